#pragma once

#include <tessera/operation/rule/signature.hpp>
#include <tessera/plan/cutting.hpp>

namespace tessera {

/// A worker's part of one tensor: the extents of the whole, and its own elements in global indices, both by dimension.
struct local_box {
  static_vector<index_t, engine::max_dimensions> extents;
  engine::holding held;

  constexpr local_box() = default;
  constexpr local_box(const layout& x, int rank) : held(engine::held_by(x, rank)) {
    for (const engine::dimension& d : x.dims) extents.push(d.extent);
  }

  /// The number of elements held along a dimension, and the global index of the first.
  constexpr index_t size(int dim) const { return engine::size_of(held[dim]); }
  constexpr index_t first(int dim) const { return held[dim][0].lo; }

  /// The global index of the element at a place in memory along a dimension.
  constexpr index_t global(int dim, index_t at) const {
    for (const engine::interval& i : held[dim]) {
      if (at < i.size()) return i.lo + at;
      at -= i.size();
    }
    return -1;
  }

  constexpr bool empty() const {
    for (int d = 0; d < held.count; ++d)
      if (size(d) == 0) return true;
    return false;
  }
};

/// Where a local operation stands: what this worker holds of each operand and of the result.
struct local_boxes {
  static_vector<local_box, 4> operands;
  local_box result;
};

}  // namespace tessera
