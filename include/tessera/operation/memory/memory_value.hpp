#pragma once

#include <tessera/plan/refusals.hpp>

#include <initializer_list>

namespace tessera::engine {

/// The memory of a network on one worker, in bytes: each tensor counts as on the worker that has most of it.
///
/// `forward` and `training` are the peaks of activations. They count inputs and outputs, which the caller holds, and
/// values that somebody still reads. They also count what a layer makes of operands and parameters before it computes,
/// and its workspace. `training`, of a network in training mode, covers forward, which keeps what backward reads, and
/// backward. Backward runs from given gradients of the outputs to those of the parameters, which have their memory
/// already; inputs have none. Each is at least what LibTorch's allocator is asked for.
///
/// Memory of transports is not LibTorch's and not counted, nor are the wider copies in which operations on half types
/// compute. A convolution is counted as LibTorch's own kernel computes it. Where that hands it to oneDNN, less is asked
/// for, but of few channels, which its layouts pad, more. Attention is counted as LibTorch's kernel of the host
/// computes it with one thread. Unless it meets keys in blocks, that kernel wants queries and values of one number of
/// features.
struct memory_value {
  index_t forward = 0;     ///< without gradients: a value is gone behind its last reader
  index_t training = 0;    ///< forward and backward
  index_t parameters = 0;  ///< as they are stored
  index_t gradients = 0;   ///< theirs
  index_t buffers = 0;
  index_t held = 0;        ///< by what is gathered of held parameters, and its gradients, until these are reduced
  index_t travelling = 0;  ///< by bundles of these gradients on their way, beside `held` and `gradients`

  friend constexpr bool operator==(const memory_value&, const memory_value&) = default;
};

/// Refuses more bytes than can be counted.
constexpr refusal check(const memory_value& m) {
  for (const index_t bytes : {m.forward, m.training, m.parameters, m.held, m.travelling})
    if (bytes == INT64_MAX) return refusal{code::cost_overflows};
  return {};
}

}  // namespace tessera::engine
