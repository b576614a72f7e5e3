#pragma once

#include <tessera/plan/change.hpp>

namespace tessera {

namespace detail {

// Whether a dimension's parts are those that it had, or each lies in the part that its worker had.
constexpr bool narrows_dimension(const layout& from, const layout& to, int d) {
  const dimension& was = from.dims[d];
  const dimension& is = to.dims[d];
  if (from.levels(d) == to.levels(d)) return same_intervals(was, is, from.part_count(d));
  if (from.levels(d) == 0 && was.tiles())
    return !is.zigzag && (is.kind == cover::tiled || is.needs.edge == boundary::zero);
  return parts(to, d).refines(parts(from, d));
}

}  // namespace detail

namespace engine {

/// Whether a Move leaves each worker one box of what it holds: axes keep their placements or give up copies. Nothing
/// moves then, and the result is a view. Asked of layouts alone, it holds on all workers or on none.
constexpr bool narrows(const step& s) {
  if (s.kind != map::move || !(s.from.mesh == s.to.mesh)) return false;
  for (int a = 0; a < s.from.placements.count; ++a) {
    const axis_placement& was = s.from.placements[a];
    const axis_placement& is = s.to.placements[a];
    if (was == is) continue;
    if (was.kind != placement::replicate && was.kind != placement::invariant) return false;
    if (is.kind == placement::on && s.from.dims.count == 0) return false;  // a scalar is 0 where it is not held
  }
  for (int d = 0; d < s.from.dims.count; ++d)
    if (!detail::narrows_dimension(s.from, s.to, d)) return false;
  return true;
}

/// Whether a change leaves each worker what it has, or one box of it.
constexpr bool stays(const change& c) { return c.steps.empty() || (c.steps.count == 1 && narrows(c.steps[0])); }

}  // namespace engine

}  // namespace tessera
