#pragma once

#include <tessera/topology/layout.hpp>

namespace tessera {

/// Whether some worker holds an equal copy of what another one holds.
constexpr bool has_copies(const layout& x) {
  for (int a = 0; a < x.roles.count; ++a)
    if (x.mesh.axes[a].extent > 1 && (x.roles[a].kind == role::replicate || x.roles[a].kind == role::invariant))
      return true;
  return false;
}

}  // namespace tessera
