#pragma once

#include <tessera/topology/layout.hpp>

namespace tessera {

namespace detail {

// One pending value has one combine: the largest of sums is not the sum of the largest. Terms of a window are sums.
constexpr refusal check_one_combine(const layout& x) {
  int first = -1;
  for (int a = 0; a < x.placements.count; ++a) {
    if (x.placements[a].kind != placement::partial || x.mesh.axes[a].extent == 1) continue;
    if (first >= 0 && x.placements[a].with != x.placements[first].with)
      return refusal{code::mixed_combines, x.mesh.axes[a].name, -1};
    first = a;
  }
  if (first < 0 || x.placements[first].with == combine::sum) return {};
  for (int d = 0; d < x.dims.count; ++d)
    if (x.dims[d].kind == cover::pending) return refusal{code::mixed_combines, x.mesh.axes[first].name, d};
  return {};
}

// A window steps, backwards only among zeros. Outputs that lie side by side read neighbours or nothing, and no number
// that is computed from it overflows.
constexpr refusal check_window(int d, const dimension& dim) {
  const window& w = dim.needs;
  constexpr index_t far = INT64_MAX / 4;
  const index_t most = larger(1, larger(dim.extent, dim.outputs));
  const bool near = w.a <= far / most && -w.a <= far / most && w.c <= far / most && -far <= w.b && w.b <= far &&
                    -far <= w.b2 && w.b2 <= far;
  if (!near) return refusal{code::window_too_large, d, w.a, w.b, w.b2};
  const bool steps = w.a > 0 || (w.a < 0 && w.edge == boundary::zero);
  if (!steps || w.c < 1 || w.b - w.b2 >= w.c || w.unreached_before < 0 || w.unreached_after < 0)
    return refusal{code::window_not_positive, d, w.a, w.c, w.b2 - w.b + 1};
  if (dim.outputs < (dim.extent == dynamic ? dynamic : 0)) return refusal{code::extent_negative, d, dim.outputs};
  return {};
}

}  // namespace detail

namespace engine {

/// Refuses a layout value that no partition describes. It refuses explicit parts that do not lie end to end over the
/// extent, and terms that combine in two ways. It refuses windows that do not step or reflect more than there is, and
/// more elements than can be counted. A zigzag has neither windows nor explicit parts.
constexpr refusal check(const layout& x) {
  for (int d = 0; d < x.dims.count; ++d) {
    const dimension& dim = x.dims[d];
    const window& w = dim.needs;
    const bool windowed = dim.kind != cover::tiled;
    if (dim.glued < 0) return refusal{code::grain_not_positive, d, dim.grain()};
    if (dim.zigzag && (windowed || dim.bounds != nullptr)) return refusal{code::interval_wanted, d};
    if (windowed)
      if (const refusal why = detail::check_window(d, dim); !why.ok()) return why;
    if (dim.extent == dynamic) continue;
    if (dim.extent < 0) return refusal{code::extent_negative, d, dim.extent};
    if (dim.extent > INT64_MAX - dim.grain()) return refusal{code::count_overflows, d, dim.extent};
    if (windowed && dim.outputs > 0 && w.edge != boundary::zero) {
      const index_t before = -w.first(0);
      const index_t after = w.last(dim.outputs - 1) + 1 - dim.extent;
      if (dim.extent == 0) return refusal{code::nothing_to_pad_from, d, before, after};
      if (w.edge == boundary::inward && (w.a != 1 || w.c != 1 || w.b2 - w.b >= dim.extent))
        return refusal{code::kernel_too_wide, d, dim.extent, 0, w.b2 - w.b + 1};
      if (w.edge == boundary::reflect && detail::larger(before, after) >= dim.extent)
        return refusal{code::reflection_too_wide, d, dim.extent, detail::larger(before, after)};
    }
    if (dim.bounds == nullptr || dim.bounds == learned || x.levels(d) == 0) continue;
    const index_t cut = windowed ? dim.outputs : dim.extent;
    const int parts = x.part_count(d);
    bool in_order = dim.bounds[0] == 0;
    for (int k = 0; k < parts; ++k) in_order = in_order && dim.bounds[k] <= dim.bounds[k + 1];
    const index_t sum = dim.bounds[parts];
    if (!in_order || (sum - 1) * dim.grain() >= cut || sum * dim.grain() < cut)
      return refusal{code::lengths_do_not_add_up, d, cut, sum * dim.grain()};
  }
  return first_of(check_count(x), detail::check_one_combine(x));
}

/// Refuses a layout whose parts are not known yet: an extent is not bound, or lengths are to be learned.
constexpr refusal check_known(const layout& x) {
  for (int d = 0; d < x.dims.count; ++d) {
    if (x.dims[d].bounds == learned) return refusal{code::lengths_not_known, d};
    if (x.dims[d].extent == dynamic) return refusal{code::extent_not_bound, d};
  }
  return {};
}

}  // namespace engine

}  // namespace tessera
