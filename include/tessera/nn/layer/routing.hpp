#pragma once

#include <tessera/nn/call/call.hpp>
#include <tessera/operation/routing/combine.hpp>
#include <tessera/operation/routing/route.hpp>

namespace tessera::nn {

/// This worker's rows to the places of their experts, and the slots of its own experts.
std::vector<at::Tensor> forward(const call& c, const engine::routing& layer);

/// The sums of gates times slots of this worker's experts, back to where their rows are.
at::Tensor forward(const call& c, const engine::combining& layer);

}  // namespace tessera::nn

#ifndef TESSERA_COMPILED
#include <tessera/nn/layer/routing_impl.hpp>
#endif
