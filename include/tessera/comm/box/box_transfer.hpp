#pragma once

#include <tessera/comm/box/region.hpp>

namespace tessera::engine {

/// A box on its way between this worker and another, or from this worker to itself.
struct box_transfer {
  int peer = 0;
  box_vector here;   ///< where it begins in this worker's tensor,
  box_vector there;  ///< and in the peer's
  box_vector extents;

  /// The dimension along which another box of the same peer begins where this one ends, in both tensors; -1 if it does
  /// not.
  int ends_at(const box_transfer& next) const {
    if (peer != next.peer) return -1;
    int along = -1;
    for (int d = 0; d < extents.count; ++d) {
      if (here[d] == next.here[d] && there[d] == next.there[d] && extents[d] == next.extents[d]) continue;
      if (along >= 0 || here[d] + extents[d] != next.here[d] || there[d] + extents[d] != next.there[d]) return -1;
      along = d;
    }
    return along;
  }
};

}  // namespace tessera::engine
