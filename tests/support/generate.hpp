#pragma once

#include <tessera/meta/sanitizers.hpp>
#include <tessera/plan/laws.hpp>

#include <cstdint>

namespace tessera::testing {

using namespace engine;

/// One of so many alike is tried. Sanitizers, under which each takes ten times as long, see the order of what threads
/// do, or what memory they touch, and no numbers: a few are enough for them.
inline constexpr int tried_of = tessera::detail::watches_threads ? 9 : tessera::detail::watches_addresses ? 8 : 1;

/// So many trials of what is rolled.
constexpr int trials(int n) { return (n + tried_of - 1) / tried_of; }

/// Whether the i-th of many alike is tried: multiples of the golden ratio, modulo one, are spread evenly whatever the
/// loops are over.
constexpr bool tried(int i) {
  return static_cast<std::uint32_t>(i) * 2654435769u <= 0xffffffffu / static_cast<unsigned>(tried_of);
}

/// A small counter-based random number generator that also runs while compiling (splitmix64).
struct rolls {
  std::uint64_t state;

  constexpr std::uint64_t next() {
    std::uint64_t z = (state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  /// A number from lo to hi, both included.
  constexpr int roll(int lo, int hi) { return lo + static_cast<int>(next() % static_cast<std::uint64_t>(hi - lo + 1)); }
  constexpr bool once_in(int n) { return roll(1, n) == 1; }
};

/// The same with room for the lists that layouts point to.
struct dice : rolls {
  constexpr explicit dice(std::uint64_t seed) : rolls{seed} {}

  // Lists that layouts point to; old ones are overwritten after some hundred numbers.
  index_t numbers[512]{};
  int ranks[256]{};
  int numbers_used = 0;
  int ranks_used = 0;

  template <class T, int N>
  constexpr T* room(T (&pool)[N], int& used, int n) {
    if (used + n > N) used = 0;
    used += n;
    return pool + used - n;
  }

  /// n items dealt at will to p parts: where each begins.
  constexpr const index_t* roll_bounds(index_t n, int p) {
    index_t* b = room(numbers, numbers_used, p + 1);
    b[0] = 0;
    for (int k = 1; k < p; ++k) b[k] = roll(static_cast<int>(b[k - 1]), static_cast<int>(n));
    b[p] = n;
    return b;
  }

  /// n different ranks in any order.
  constexpr const int* roll_ranks(int n, int most) {
    int* r = room(ranks, ranks_used, most);
    for (int i = 0; i < most; ++i) r[i] = i;
    for (int i = 0; i < n; ++i) {
      const int j = roll(i, most - 1);
      const int swap = r[i];
      r[i] = r[j];
      r[j] = swap;
    }
    return r;
  }
};

inline constexpr text axis_names[]{text{"a"}, text{"b"}, text{"c"}, text{"d"}};

/// A mesh of one to three axes, sometimes in another order, with gaps, or strided.
constexpr mesh_value roll_mesh(dice& d, int widest = 4) {
  mesh_value m;
  const int axes = d.roll(1, 3);
  const int first = d.roll(0, 1);
  int extents[3]{};
  for (int i = 0; i < axes; ++i) extents[i] = d.roll(1, widest);
  m.first = d.once_in(3) ? d.roll(0, 3) : 0;
  const bool column_major = axes == 2 && d.once_in(4);
  int stride = column_major ? 1 : d.once_in(5) ? 2 : 1;
  int strides[3]{};
  for (int k = 0; k < axes; ++k) {
    const int i = column_major ? k : axes - 1 - k;
    strides[i] = stride;
    stride *= extents[i];
  }
  for (int i = 0; i < axes; ++i) m.axes.push({axis_names[(first + i) % 4], extents[i], strides[i]});
  if (d.once_in(5)) m = row_major(m, 0, d.roll_ranks(m.size(), m.size() + 2));
  return m;
}

struct kinds {
  bool partial = false;
  bool invariant = false;
  bool on = false;
  bool haloed = false;
  bool zigzag = false;
};

/// Composes another window onto the one that a dimension has, if both go together.
constexpr void then_another(dice& d, dimension& dim, index_t& cut) {
  const sliding next{d.roll(1, 3), d.roll(1, 2), d.roll(0, 2), d.roll(0, 2), 1, dim.needs.edge};
  if (!next.check(0, cut).ok() || !composes(dim.needs, next.needs(), cut, dim.extent)) return;
  dim.needs = composed(dim.needs, next.needs(), cut, dim.extent);
  dim.outputs = cut = next.outputs(cut);
}

/// Covers and placements for a tensor of these extents over a mesh.
constexpr layout roll_layout(dice& d, const mesh_value& mesh, const static_vector<index_t, max_dimensions>& extents,
                             kinds allow) {
  layout x;
  x.mesh = mesh;
  x.placements.resize(mesh.axes.count);
  for (index_t n : extents) {
    dimension dim;
    dim.extent = n;
    x.dims.push(dim);
  }
  int order[max_axes]{};
  for (int i = 0; i < mesh.axes.count; ++i) order[i] = i;
  for (int i = mesh.axes.count - 1; i > 0; --i) {
    const int j = d.roll(0, i);
    const int swap = order[i];
    order[i] = order[j];
    order[j] = swap;
  }
  for (int i = 0; i < mesh.axes.count; ++i) {
    const int a = order[i];
    const int what = d.roll(0, 7);
    if (what <= 4 && extents.count > 0) {
      const int dim = d.roll(0, extents.count - 1);
      x.cut_by(dim, a, x.levels(dim) > 0 && d.once_in(3));
    } else if (what == 5 && allow.partial) {
      x.placements[a] = {placement::partial};
    } else if (what == 6 && allow.invariant) {
      x.placements[a] = {placement::invariant};
    } else if (what == 7 && allow.on) {
      x.placements[a] = held_on(d.roll(0, mesh.axes[a].extent - 1));
    }
  }
  for (int k = 0; k < x.dims.count; ++k) {
    if (x.levels(k) == 0) continue;
    dimension& dim = x.dims[k];
    index_t cut = dim.extent;
    if (allow.haloed && d.once_in(3)) {
      const boundary edges[]{boundary::zero, boundary::zero, boundary::reflect, boundary::replicate,
                             boundary::periodic};
      sliding s{d.roll(1, 4), d.roll(1, 3), d.roll(0, 3), d.roll(0, 3), d.roll(1, 2), edges[d.roll(0, 4)]};
      if (s.check(k, dim.extent).ok()) {
        dim.kind = cover::haloed;
        dim.outputs = cut = s.outputs(dim.extent);
        dim.needs = s.needs();
        if (d.once_in(3)) then_another(d, dim, cut);
      }
      const int n = static_cast<int>(dim.extent);
      if (n > 0 && d.once_in(8)) {  // a window that moves inside
        const int around = d.roll(0, (n - 1) / 2);
        dim.kind = cover::haloed;
        dim.outputs = cut = d.roll(1, n);
        dim.needs = {1, -around, around, 1, 0, 0, boundary::inward};
      } else if (d.once_in(8)) {  // one that steps backwards
        dim.kind = cover::haloed;
        dim.outputs = cut = d.roll(1, 2 * n + 1);
        dim.needs = {-d.roll(1, 2), d.roll(-3, 2 * n), 0, 1};
        dim.needs.b2 = dim.needs.b + d.roll(0, 4);
      }
    }
    if (d.once_in(4)) dim.set_grain(d.roll(1, 3));
    if (d.once_in(5)) dim.bounds = d.roll_bounds(detail::ceil_divide(cut, dim.grain()), x.part_count(k));
    if (d.once_in(6)) dim.turned = d.roll(0, x.part_count(k) - 1);
    dim.zigzag = allow.zigzag && dim.kind == cover::tiled && dim.bounds == nullptr && d.once_in(4);
  }
  return x;
}

/// The same layout over a mesh with more axes of extent 1, each in some placement: it cuts at any level or has any
/// meaning.
constexpr layout with_ones(dice& d, const layout& x) {
  constexpr text names[]{text("p"), text("q"), text("r")};
  layout y = x;
  y.mesh.axes.resize(0);
  y.placements.resize(0);
  int ones = 0;
  for (int a = 0; a <= x.mesh.axes.count; ++a) {
    if (ones < 3 && d.once_in(2)) {
      y.mesh.axes.push({names[ones++], 1, d.roll(0, 3)});
      y.placements.push({});
    }
    if (a == x.mesh.axes.count) break;
    y.mesh.axes.push(x.mesh.axes[a]);
    y.placements.push(x.placements[a]);
  }
  for (int a = 0; a < y.mesh.axes.count; ++a) {
    if (y.mesh.axes[a].extent > 1 || y.placements[a].kind != placement::replicate) continue;
    const placement kind = static_cast<placement>(d.roll(0, 4));
    if (kind != placement::cut) {
      y.placements[a] = {kind};
    } else if (y.dims.count > 0) {
      const int dim = d.roll(0, y.dims.count - 1);
      const int level = d.roll(0, y.levels(dim));
      for (auto& r : y.placements)
        if (r.kind == placement::cut && r.dimension == dim && r.level >= level) ++r.level;
      const int next = y.cutter(dim, level + 1);  // between two that cut together it cuts with them
      y.placements[a] = {placement::cut, static_cast<signed char>(dim), static_cast<signed char>(level),
                         next >= 0 && y.placements[next].joined};
    }
  }
  return y;
}

constexpr static_vector<index_t, max_dimensions> roll_extents(dice& d, int most_dims = 5, int widest = 9) {
  static_vector<index_t, max_dimensions> e;
  const int dims = d.roll(0, most_dims);
  for (int i = 0; i < dims; ++i) e.push(d.once_in(12) ? 0 : d.roll(1, widest));
  return e;
}

/// A pair of layouts of one tensor between which a change leads.
struct layout_pair {
  layout from;
  layout to;
};

constexpr layout_pair roll_tilings(dice& d, bool to_haloed, int most_dims = 5, int widest = 9) {
  const auto extents = roll_extents(d, most_dims, widest);
  const mesh_value first = roll_mesh(d);
  const mesh_value second = d.once_in(3) ? roll_mesh(d) : first;
  layout_pair pair{roll_layout(d, first, extents, {false, true, true, false, true}),
                   roll_layout(d, second, extents, {false, true, true, to_haloed, true})};
  for (int k = 0; k < pair.from.dims.count; ++k)  // a window that runs around the end starts from no zigzag
    if (pair.to.dims[k].kind != cover::tiled && pair.to.dims[k].needs.edge == boundary::periodic)
      pair.from.dims[k].zigzag = false;
  return pair;
}

}  // namespace tessera::testing
