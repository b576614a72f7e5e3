#pragma once

#include <tessera/operation/rule/stream.hpp>
#include <tessera/tensor/change/bound_exchanges.hpp>
#include <tessera/tensor/stream/stream_function.hpp>

#include <memory>
#include <vector>

namespace tessera::engine {

/// How each step of a stream meets a tensor: an operand, or, as its adjoint, a result.
enum class stream_role : signed char {
  all,    ///< each step reads the whole box; each adds terms to it
  range,  ///< each reads, or writes, the indices of its part along a dimension
  part    ///< each reads a part that comes from its owner, or makes terms that go there
};

/// A tensor of a stream, as this worker has it.
struct stream_end {
  stream_role role = stream_role::all;
  int dim = 0;                 ///< range and part: the streamed dimension
  shared_layout_handle lies;   ///< part: the whole tensor's layout
  std::vector<index_t> sizes;  ///< of this worker's box
  at::ScalarType type = at::kFloat;
};

/// One evaluation of a function of parts that come one after another, f ∘ Move, or go so, Fold ∘ f.
///
/// Each worker begins with its own part and goes on with that of the next; a chunk comes while the one before it is
/// computed. Owners add terms as they arrive, from the worker before them on, in float where they are half types, and
/// round once. The adjoint is a stream with the same ends: what comes goes, what is read is written.
struct stream {
  std::vector<stream_end> operands;
  std::vector<stream_end> results;
  index_t rows = 1;  ///< of a part at once
  /// Its gradient is a function of its results too, which stand behind its operands there; gradients that did not come
  /// are undefined there, not zeros.
  bool keeps_results = false;
  std::shared_ptr<const stream_function> f;

  /// The stream of its gradient: of the operands and the results' gradients, to those of the operands.
  stream adjoint(team_state& team) const;
};

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
