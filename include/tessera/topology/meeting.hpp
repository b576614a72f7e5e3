#pragma once

#include <tessera/topology/layout.hpp>

namespace tessera::engine {

/// A mesh without its axes of extent 1, on which nothing depends.
constexpr mesh_value without_ones(const mesh_value& mesh) {
  mesh_value left;
  left.first = mesh.first;
  left.ranks = mesh.ranks;
  for (const axis_value& a : mesh.axes)
    if (a.extent > 1) left.axes.push(a);
  return left;
}

/// Two meshes meet when they are the same but for axes of extent 1: an axis that a mesh lacks counts as extent 1.
constexpr bool meet(const mesh_value& a, const mesh_value& b) { return without_ones(a) == without_ones(b); }

/// The same layout over a mesh that meets its own; axes of extent 1 cut nothing and have no placement there.
constexpr layout over(layout x, const mesh_value& mesh) {
  for (int a = 0; a < x.placements.count; ++a)
    if (x.mesh.axes[a].extent == 1) x.release(a);
  static_vector<axis_placement, max_axes> placements;
  int from = 0;
  for (const axis_value& a : mesh.axes) {
    if (a.extent == 1) {
      placements.push({});
      continue;
    }
    while (x.mesh.axes[from].extent == 1) ++from;
    placements.push(x.placements[from++]);
  }
  x.mesh = mesh;
  x.placements = placements;
  return x;
}

/// Whether axes of extent 1 have no placement in a layout, as `over` leaves it.
constexpr bool ones_idle(const layout& x) {
  for (int a = 0; a < x.placements.count; ++a)
    if (x.mesh.axes[a].extent == 1 && x.placements[a].kind != placement::replicate) return false;
  return true;
}

}  // namespace tessera::engine
