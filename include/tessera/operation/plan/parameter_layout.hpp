#pragma once

#include <tessera/topology/layout.hpp>

#include <initializer_list>

namespace tessera {

/// The layout in which an uncut weight of these extents meets x locally: copies of the kind that x has along each axis.
template <class Extents = std::initializer_list<index_t>>
constexpr layout weight_for(const layout& x, const Extents& extents) {
  layout w;
  w.mesh = x.mesh;
  for (const engine::axis_placement& r : x.placements)
    w.placements.push(r.kind == placement::cut || r.kind == placement::partial ? engine::axis_placement{} : r);
  for (index_t n : extents) {
    engine::dimension d;
    d.extent = n;
    w.dims.push(d);
  }
  return w;
}

namespace engine {

/// One number for all elements that differ along such dimensions alone, where those elements are: a statistic, a draw.
template <class Along>
constexpr layout one_along(layout x, const Along& along) {
  for (axis_placement& r : x.placements)
    if (r.kind == placement::cut && along(r.dimension)) r = {};
  for (int d = 0; d < x.dims.count; ++d) {
    if (!along(d)) continue;
    x.dims[d] = {};
    x.dims[d].extent = 1;
  }
  return x;
}

}  // namespace engine

/// The stored form of a parameter: invariant unless it is cut or on one coordinate, and without halos. Every worker
/// that holds a copy steps it alike.
constexpr layout stored_form(layout used) {
  for (int a = 0; a < used.placements.count; ++a)
    if (used.placements[a].kind == placement::replicate || used.placements[a].kind == placement::partial)
      used.placements[a] = {placement::invariant};
  for (engine::dimension& d : used.dims) {
    if (d.tiles()) continue;
    d.tile();
    d.balance(1);
  }
  return used;
}

namespace engine {

/// A number that all workers of a mesh have, as the counters of layers are.
constexpr layout one_number(const mesh_value& mesh) {
  layout x;
  x.mesh = mesh;
  for (int a = 0; a < mesh.axes.count; ++a) x.placements.push({placement::invariant});
  return x;
}
/// A number that the workers of a tensor have: those of one coordinate where it lies on one.
constexpr layout one_number(const layout& of) {
  layout x = one_number(of.mesh);
  for (int a = 0; a < of.placements.count; ++a)
    if (of.placements[a].kind == placement::on) x.placements[a] = of.placements[a];
  return x;
}

}  // namespace engine
}  // namespace tessera
