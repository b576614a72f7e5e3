#pragma once

#include <tessera/comm/region.hpp>

namespace tessera {

/// A box on its way between this worker and another, or from this worker to itself.
struct leg {
  int peer = 0;
  box_vector here;   ///< where it begins in this worker's tensor,
  box_vector there;  ///< and in the peer's
  box_vector extents;

  /// Takes in another of the same peer that begins where this one ends, in both tensors; false if it does not.
  bool extend_by(const leg& next) {
    int along = -1;
    for (int d = 0; d < extents.count; ++d) {
      if (here[d] == next.here[d] && there[d] == next.there[d] && extents[d] == next.extents[d]) continue;
      if (along >= 0 || here[d] + extents[d] != next.here[d] || there[d] + extents[d] != next.there[d]) return false;
      along = d;
    }
    if (peer != next.peer || along < 0) return false;
    extents[along] += next.extents[along];
    return true;
  }
};

}  // namespace tessera
