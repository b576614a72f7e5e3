#pragma once
// Cases whose tensors lie on devices: this machine's, or those of a machine that has none (tests/whole/gpu/here.hpp).

#include <tessera/comm/workers.hpp>

#include <functional>
#include <string>

namespace conformance {

/// Where the tensors of a case lie, and what connects the devices if they are there.
enum class lying { on_host, over_nccl, through_host };

/// Launches something over what carries such tensors. Returns what went wrong first, as the launch does.
std::string launched(lying where, const std::function<std::string(const tessera::engine::transport_layer&)>& launch);

}  // namespace conformance
