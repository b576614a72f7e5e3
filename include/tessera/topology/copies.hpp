#pragma once

#include <tessera/topology/layout.hpp>

namespace tessera::engine {

/// Whether some worker holds an equal copy of what another one holds.
constexpr bool has_copies(const layout& x) {
  for (int a = 0; a < x.placements.count; ++a)
    if (x.mesh.axes[a].extent > 1 &&
        (x.placements[a].kind == placement::replicate || x.placements[a].kind == placement::invariant))
      return true;
  return false;
}

}  // namespace tessera::engine
