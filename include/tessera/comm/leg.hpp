#pragma once

#include <tessera/comm/region.hpp>

namespace tessera {

/// A box on its way between this worker and another, or from this worker to itself.
struct leg {
  int peer = 0;
  box_vector here;   ///< where it begins in this worker's tensor,
  box_vector there;  ///< and in the peer's
  box_vector extents;
};

}  // namespace tessera
