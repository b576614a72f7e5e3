#pragma once

#include <tessera/plan/change.hpp>

namespace tessera {

namespace engine {

/// Up to three dimensions that a Fourier transform goes over, in the order in which they are named.
using transformed_dims = static_vector<int, 3>;

/// The way of a tensor to dimensions that are whole one after the other: axes that cut the next one go to another.
struct fourier_route {
  layout home;            ///< as the tensor lay before
  transformed_dims dims;  ///< those that are transformed
  unsigned done = 0;      ///< bit d: dimension d is transformed
  int samples = -1;       ///< a dimension that no axis goes to while there is another

  constexpr bool goes_over(int d) const {
    for (int one : dims)
      if (one == d) return true;
    return false;
  }
  constexpr bool is_done(int d) const { return (done >> d & 1u) != 0; }

  /// How well axes go to a dimension where they may stay until all are transformed.
  static constexpr int stays = 7;
  /// How well the axes of dimension d go to dimension t; 0: not at all. Extents that a type does not know say nothing.
  constexpr int fit(const layout& x, int d, int t) const {
    const dimension& to = x.dims[t];
    if (t == d || to.kind != cover::tiled || to.bounds == learned) return 0;
    const bool known = to.has_static_extent();
    const index_t parts = index_t{1} * x.part_count(t) * x.part_count(d);
    if (known && to.extent < 2) return 0;
    if (t == samples) return 1;
    // one that is cut at home will want its own axes back
    if (goes_over(t)) return known && to.extent >= parts ? 4 + is_done(t) + (is_done(t) && home.levels(t) == 0) : 2;
    return known && samples < 0 && to.extent % parts == 0 ? stays : 3;
  }
  /// The dimension that the axes of d go to, or −1.
  constexpr int partner(const layout& x, int d) const {
    int best = -1;
    for (int t = 0; t < x.dims.count; ++t) {
      const int fits = fit(x, d, t), before = best < 0 ? 0 : fit(x, d, best);
      if (fits > before || (fits > 0 && fits == before && room(x, t) > room(x, best))) best = t;
    }
    return best;
  }

  /// Makes dimension d whole. Its axes cut another one then, or none where there is none; those that cut it at home
  /// come first.
  constexpr void make_whole(layout& x, int d) const { give_axes(x, d, partner(x, d)); }

  constexpr void give_axes(layout& x, int d, int t) const {
    static_vector<int, max_axes> moved, inside;
    for (int level = 0; level < x.levels(d); ++level) moved.push(x.cutter(d, level));
    for (int level = 0; t >= 0 && level < x.levels(t); ++level) inside.push(x.cutter(t, level));
    for (int a : moved) x.placements[a] = {};
    const index_t n = x.dims[d].extent;
    const text tag = x.dims[d].tag;
    x.dims[d] = {};
    x.dims[d].extent = n;
    x.dims[d].tag = tag;
    if (t < 0) return;
    for (int a : moved) inside.push(a);
    x.dims[t].balance(1);
    int at = 0;
    for (int level = 0; level < home.levels(t); ++level) {
      const int a = home.cutter(t, level);
      bool here = false;
      for (int one : inside) here = here || one == a;
      if (!here) continue;
      x.placements[a] = {placement::cut, static_cast<signed char>(t), static_cast<signed char>(at),
                         at == level && home.placements[a].joined};
      ++at;
    }
    const bool as_home = at == home.levels(t) && at == inside.count && x.dims[t].extent == home.dims[t].extent;
    if (as_home && home.dims[t].kind == cover::tiled) x.dims[t] = home.dims[t];
    for (int a : inside) {
      if (is_at_home(a, t)) continue;
      x.placements[a] = {placement::cut, static_cast<signed char>(t), static_cast<signed char>(at++)};
    }
  }

 private:
  constexpr bool is_at_home(int a, int t) const {
    return home.placements[a].kind == placement::cut && home.placements[a].dimension == t;
  }
  // Elements for each part; none that is known counts as none.
  static constexpr index_t room(const layout& x, int t) {
    const dimension& d = x.dims[t];
    return d.has_static_extent() ? d.extent / x.part_count(t) : 0;
  }
};

}  // namespace engine

}  // namespace tessera
