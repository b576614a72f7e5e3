#pragma once

#include <tessera/plan/all_reduce_cost.hpp>

#include <initializer_list>

namespace tessera {

namespace engine {

/// A change without what its cost does not depend on: names, and dimensions that are cut nowhere, whose extents are a
/// factor.
///
/// Changes that differ in nothing else are one, so that what they move is counted once: cost = `times` · cost of the
/// reduced one.
struct reduced_change {
  layout from;
  layout to;
  index_t times = 0;  ///< 0: the change is not reduced
};

}  // namespace engine

namespace detail {

// Whether terms are added up for copies, which cuts the dimension that is shared most evenly, whichever it is.
constexpr bool spreads(const layout& from, const layout& to) {
  for (int a = 0; a < from.placements.count; ++a) {
    const placement f = from.placements[a].kind;
    const placement t = to.placements[a].kind;
    // there or, as the cotangent of copies, on the way back
    const bool adds = f == placement::partial || f == placement::invariant;
    if (adds && t != placement::cut && t != placement::on && !(from.placements[a] == to.placements[a])) return true;
  }
  return false;
}

}  // namespace detail

namespace engine {

/// Reduces a change between layouts on one mesh whose extents are known and cut by no list.
constexpr reduced_change reduced(const layout& from, const layout& to) {
  reduced_change c;
  if (!(from.mesh == to.mesh) || from.dims.count != to.dims.count || detail::spreads(from, to)) return c;
  index_t times = 1;
  signed char renumbered[max_dimensions]{};
  for (int d = 0; d < from.dims.count; ++d) {
    dimension x = from.dims[d];
    dimension y = to.dims[d];
    if (x.extent == dynamic || x.extent != y.extent || x.bounds != nullptr || y.bounds != nullptr) return c;
    renumbered[d] = static_cast<signed char>(c.from.dims.count);
    if (from.levels(d) == 0 && to.levels(d) == 0 && x.kind == cover::tiled && y.kind == cover::tiled) {
      times = detail::capped_product(times, x.extent);
      continue;
    }
    x.tag = y.tag = {};
    c.from.dims.push(x);
    c.to.dims.push(y);
  }
  for (int a = 0; a < from.placements.count; ++a) {
    axis_value axis{{}, from.mesh.axes[a].extent, 0};
    axis.name.hash = static_cast<std::uint64_t>(a) + 1;
    c.from.mesh.axes.push(axis);
    for (const layout* x : {&from, &to}) {
      axis_placement r = x->placements[a];
      if (r.kind == placement::cut) r.dimension = renumbered[r.dimension];
      (x == &from ? c.from : c.to).placements.push(r);
    }
  }
  c.from.mesh = c.to.mesh = row_major(c.from.mesh);
  c.times = times;
  return c;
}

}  // namespace engine

}  // namespace tessera
