#pragma once

#include <tessera/topology/layout.hpp>

#include <vector>

namespace tessera::testing {

using namespace engine;

/// A tensor of which every worker of a mesh has a copy.
inline layout copied(const mesh_value& m, const std::vector<index_t>& extents) {
  layout x;
  x.mesh = m;
  for (int a = 0; a < m.axes.count; ++a) x.placements.push({placement::invariant});
  for (const index_t n : extents) {
    dimension uncut;
    uncut.extent = n;
    x.dims.push(uncut);
  }
  return x;
}

}  // namespace tessera::testing
