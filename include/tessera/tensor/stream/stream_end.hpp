#pragma once

#include <tessera/operation/rule/stream_reach.hpp>
#include <tessera/tensor/change/change.hpp>
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
  index_t rows = 1;    ///< of a part at once
  stream_reach reach;  ///< of the indices of a tensor that lies so; what they do not read stays where it is
  shared_layout_handle readers;
  /// Its gradient is a function of its results too, which stand behind its operands there; gradients that did not come
  /// are undefined there, not zeros.
  bool keeps_results = false;
  std::shared_ptr<const stream_function> f;

  /// The stream of its gradient: of the operands and the results' gradients, to those of the operands.
  stream adjoint(team_state& team) const;
};

}  // namespace tessera::engine
