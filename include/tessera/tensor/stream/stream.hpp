#pragma once

#include <tessera/operation/rule/stream.hpp>
#include <tessera/tensor/change/bound_exchanges.hpp>
#include <tessera/tensor/stream/stream_end.hpp>

#include <memory>
#include <vector>

namespace tessera::engine {

/// The stream of an operation whose signature has one, of a function of its operands' pieces.
stream stream_for(const signature& op, const bound_exchanges& by, const std::vector<at::Tensor>& x,
                  std::shared_ptr<const stream_function> f);

/// Evaluates a stream on this worker's boxes, with its gradient; all workers of the team call it. Results that nobody
/// wants stay undefined.
std::vector<at::Tensor> evaluate(const team_handle& team, const stream& s, const std::vector<at::Tensor>& operands,
                                 const std::vector<bool>& wanted = {});

}  // namespace tessera::engine

#ifndef TESSERA_COMPILED
#include <tessera/tensor/stream/stream_impl.hpp>
#endif
