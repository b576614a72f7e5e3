#pragma once

#include <tessera/topology/layout.hpp>

namespace tessera {

/// Refuses a layout value that no partition means: explicit parts that do not lie end to end over the extent, windows that
/// step backwards or reflect more than there is, more elements than can be counted.
constexpr refusal check(const layout& x) {
  for (int d = 0; d < x.dims.count; ++d) {
    const dimension& dim = x.dims[d];
    const window& w = dim.needs;
    const bool windowed = dim.kind != cover::tiled;
    if (dim.glued < 0) return refusal{code::grain_not_positive, d, dim.grain()};
    if (windowed && (w.a < 1 || w.c < 1 || w.b2 < w.b)) return refusal{code::window_not_positive, d, w.a, w.c, w.b2 - w.b + 1};
    if (dim.extent == dynamic) continue;
    if (dim.extent < 0) return refusal{code::extent_negative, d, dim.extent};
    if (windowed && dim.outputs > 0 && w.edge != boundary::zero) {
      const index_t before = -w.first(0);
      const index_t after = w.last(dim.outputs - 1) + 1 - dim.extent;
      if (dim.extent == 0) return refusal{code::nothing_to_pad_from, d, before, after};
      if (w.edge == boundary::reflect && detail::larger(before, after) >= dim.extent)
        return refusal{code::reflection_too_wide, d, dim.extent, detail::larger(before, after)};
    }
    if (dim.bounds == nullptr || dim.bounds == learned || x.levels(d) == 0) continue;
    const index_t cut = windowed ? dim.outputs : dim.extent;
    const int parts = x.parts(d);
    bool in_order = dim.bounds[0] == 0;
    for (int k = 0; k < parts; ++k) in_order = in_order && dim.bounds[k] <= dim.bounds[k + 1];
    const index_t sum = dim.bounds[parts];
    if (!in_order || (sum - 1) * dim.grain() >= cut || sum * dim.grain() < cut)
      return refusal{code::lengths_do_not_add_up, d, cut, sum * dim.grain()};
  }
  return check_count(x);
}

}  // namespace tessera
