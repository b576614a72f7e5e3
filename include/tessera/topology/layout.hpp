#pragma once

#include <tessera/topology/axis_placement.hpp>
#include <tessera/topology/mesh_value.hpp>
#include <tessera/topology/window.hpp>

namespace tessera {

/// How the parts of a dimension relate to its elements.
///
///  tiled    each element is in one part
///  haloed   parts are what a window needs for the parts of its outputs: copies, they may overlap; a range of a cut
///  dimension,
///           whose workers keep what they held of it, is that of a window of one tap: a tiling again
///  pending  the cotangent of haloed: the same intervals, but terms until they are folded
enum class cover : signed char { tiled, haloed, pending };

namespace engine {

/// One dimension of a tensor: its extent and how it is cut.
struct dimension {
  index_t extent = 0;
  text tag;                         ///< the name of a dynamic extent
  index_t glued = 0;                ///< elements that are never split from the one before them: grain − 1
  const index_t* bounds = nullptr;  ///< explicit parts: part k is units [bounds[k], bounds[k + 1]); owned elsewhere
  int turned = 0;                   ///< the part that coordinate 0 holds: coordinate i holds part i + turned
  cover kind = cover::tiled;
  index_t outputs = 0;  ///< haloed: extent of the dimension whose parts the window serves
  window needs;         ///< haloed: which inputs an output needs

  /// How many elements are never split.
  constexpr index_t grain() const { return glued + 1; }
  constexpr void set_grain(index_t elements) { glued = elements - 1; }

  /// Holds each element once: drops what a window needed.
  constexpr void tile() {
    kind = cover::tiled;
    outputs = 0;
    needs = {};
  }

  /// Whether each element is in one part: a window of one tap that steps by one, over all of the dimension, gives each
  /// once.
  constexpr bool tiles() const {
    const window one_tap{1, needs.b, needs.b, 1};
    return kind == cover::tiled ||
           (needs == one_tap && needs.b <= 0 && extent != dynamic && outputs + needs.b >= extent);
  }

  /// Whether one part of all outputs has every element: a window that ends before the last one leaves some out.
  constexpr bool reaches_all() const {
    if (kind == cover::tiled || extent == 0) return true;
    if (extent == dynamic || outputs <= 0 || needs.unreached_before > 0 || needs.unreached_after > 0) return false;
    return needs.first(0) <= 0 && needs.last(outputs - 1) >= extent - 1;
  }

  /// Whether its windows lie end to end over all of it, as those of most poolings: then its parts are tiles.
  constexpr bool windows_are_tiles() const {
    const bool end_to_end = needs.a > 0 && needs == window{needs.a, 0, needs.a - 1, 1, 0, 0, needs.edge};
    return kind != cover::tiled && end_to_end && extent != dynamic && extent % needs.a == 0 &&
           extent / needs.a == outputs;
  }

  /// Keeps the elements [begin, begin + length) where they are, under their indices in the range.
  constexpr void narrow(index_t begin, index_t length) {
    if (kind == cover::tiled) {
      kind = cover::haloed;
      outputs = extent;
      needs = {1, 0, 0, 1};
    }
    needs.b -= begin * needs.c;
    needs.b2 -= begin * needs.c;
    needs.unreached_before = detail::larger(0, needs.unreached_before - begin);
    needs.unreached_after =
        extent == dynamic ? 0 : detail::larger(0, needs.unreached_after - (extent - begin - length));
    extent = length;
    if (needs == window{1, 0, 0, 1} && outputs == extent) tile();
  }

  /// Holds of a tiling what windows of n outputs need. Outputs that `keep` its parts lie as its elements do, be they a
  /// range of a longer dimension; others are cut evenly.
  constexpr void hold(const window& w, index_t n, bool keep) {
    const bool range = kind != cover::tiled;
    if (keep && range && engine::composes(w, needs, n, extent)) {
      needs = engine::composed(w, needs, n, extent);
      return;
    }
    if (!keep || range) balance(1);
    kind = cover::haloed;
    outputs = n;
    needs = w;
  }

  /// Cut into balanced parts, dealt in order, of units of a grain.
  constexpr void balance(index_t grain_elements) {
    set_grain(grain_elements);
    bounds = nullptr;
    turned = 0;
  }
};

/// The bounds of parts whose lengths are learned when a tensor is made of boxes: a type knows that there are some, not
/// which.
inline constexpr index_t learned[]{dynamic};

/// Two dimensions that the same axes cut into `parts` parts have the same intervals, be they copies or terms.
constexpr bool same_intervals(const dimension& p, const dimension& q, int parts) {
  if (p.extent != q.extent || p.turned != q.turned) return false;
  if ((p.kind == cover::tiled) != (q.kind == cover::tiled)) return false;
  if (p.kind != cover::tiled && (p.outputs != q.outputs || !(p.needs == q.needs))) return false;
  if ((p.bounds == nullptr) != (q.bounds == nullptr)) return false;
  if (p.bounds == q.bounds) return p.grain() == q.grain();
  if (p.bounds == learned || q.bounds == learned) return false;
  for (int i = 0; i <= parts; ++i)
    if (p.bounds[i] * p.grain() != q.bounds[i] * q.grain()) return false;
  return true;
}

}  // namespace engine

/// How a tensor lies over a mesh, as a value: for each axis of the mesh its placement, for each dimension its cover.
///
/// An axis has exactly one placement, so no axis can be used twice.
struct layout {
  mesh_value mesh;
  static_vector<engine::axis_placement, engine::max_axes> placements =
      engine::no_items<engine::axis_placement, engine::max_axes>;  ///< one for each axis of the mesh
  /// one for each dimension of the tensor
  static_vector<engine::dimension, engine::max_dimensions> dims =
      engine::no_items<engine::dimension, engine::max_dimensions>;

  constexpr int rank() const { return dims.count; }

  /// How many axes cut a dimension.
  constexpr int levels(int dim) const {
    int n = 0;
    for (int a = 0; a < placements.count; ++a)
      n += placements.items[a].kind == placement::cut && placements.items[a].dimension == dim;
    return n;
  }

  /// The axis that cuts a dimension at a level, or -1.
  constexpr int cutter(int dim, int level) const {
    for (int a = 0; a < placements.count; ++a)
      if (const engine::axis_placement& r = placements.items[a];
          r.kind == placement::cut && r.dimension == dim && r.level == level)
        return a;
    return -1;
  }

  /// Numbers the axes that cut a dimension 0, 1, … in the order they have, where some were left out; an axis joins none
  /// that was left out.
  constexpr void close_levels(int dim) {
    const int count = levels(dim);
    for (int next = 0, level = 0; next < count; ++level) {
      const int a = cutter(dim, level);
      if (a < 0) continue;
      placements[a].joined = placements[a].joined && next == level;
      placements[a].level = static_cast<signed char>(next++);
    }
  }

  /// How many parts a dimension is cut into.
  constexpr int part_count(int dim) const {
    int n = 1;
    for (int a = 0; a < placements.count; ++a)
      if (placements.items[a].kind == placement::cut && placements.items[a].dimension == dim)
        n *= mesh.axes.items[a].extent;
    return n;
  }

  /// Whether the parts of a dimension have each of its elements once, or the only part all of them.
  constexpr bool has_each_once(int dim) const { return levels(dim) > 0 ? dims[dim].tiles() : dims[dim].reaches_all(); }

  /// Makes an axis cut a dimension inside all axes that cut it already.
  ///
  /// Explicit parts and turned deals are those of the axes that they were made for, so they go.
  constexpr void cut_by(int dim, int axis, bool joined = false) {
    dims[dim].balance(dims[dim].grain());
    placements[axis] = {placement::cut, static_cast<signed char>(dim), static_cast<signed char>(levels(dim)), joined};
  }

  /// Gives an axis a placement; the axes that cut its dimension inside it move up one level, explicit parts go.
  constexpr void set_placement(int axis, engine::axis_placement to) {
    if (placements[axis].kind == placement::cut) {
      engine::dimension& d = dims[placements[axis].dimension];
      d.balance(d.grain());
    }
    release(axis);
    placements[axis] = to;
  }

  /// The same, holding along a dimension that is cut what balanced outputs of a kernel need.
  constexpr layout halo(int dim, const sliding& kernel) const {
    layout x = *this;
    engine::dimension& d = x.dims[dim];
    d.kind = cover::haloed;
    d.balance(1);
    d.outputs = kernel.outputs(d.extent);
    d.needs = kernel.needs();
    return x;
  }

  /// Takes an axis out of what it cuts; parts stay as they are, so it must be of extent 1.
  constexpr void release(int axis) {
    const engine::axis_placement before = placements[axis];
    placements[axis] = {};
    if (before.kind != placement::cut) return;
    for (int a = 0; a < placements.count; ++a) {
      engine::axis_placement& r = placements[a];
      if (r.kind != placement::cut || r.dimension != before.dimension || r.level <= before.level) continue;
      if (--r.level == before.level) r.joined = r.joined && before.joined;
    }
    engine::dimension& d = dims[before.dimension];
    if (levels(before.dimension) > 0 || !d.reaches_all()) return;
    d.tile();
    d.balance(1);
  }

  /// Equal in spelling, names of dynamic extents included.
  friend constexpr bool operator==(const layout& a, const layout& b) {
    if (a.dims.count != b.dims.count) return false;
    for (int d = 0; d < a.dims.count; ++d)  // first what tells most layouts apart
      if (a.dims.items[d].extent != b.dims.items[d].extent || a.dims.items[d].kind != b.dims.items[d].kind)
        return false;
    if (!(a.placements == b.placements) || !(a.mesh == b.mesh)) return false;
    for (int d = 0; d < a.dims.count; ++d)
      if (!(a.dims[d].tag == b.dims[d].tag) || !engine::same_intervals(a.dims[d], b.dims[d], a.part_count(d)))
        return false;
    return true;
  }
};

namespace detail {

/// Writes one deal in one way: whole turns are none, and a joint cut that comes out even is one cut after the other, of
/// single elements where the last grain is whole.
constexpr void tidy(layout& x, int d) {
  dimension& dim = x.dims[d];
  const int parts = x.part_count(d);
  dim.turned = ((dim.turned % parts) + parts) % parts;
  const index_t cut = dim.kind == cover::tiled ? dim.extent : dim.outputs;
  if (dim.bounds == nullptr && (cut == dynamic || ceil_divide(cut, dim.grain()) % parts != 0)) return;
  for (axis_placement& r : x.placements)
    if (r.kind == placement::cut && r.dimension == d) r.joined = false;
  if (dim.bounds == nullptr && cut % dim.grain() == 0) dim.set_grain(1);
}

}  // namespace detail

namespace engine {

/// Drops what makes no difference: axes of extent 1, axes held on one coordinate (their sub-mesh says it), the grain
/// and the window of dimensions that nothing cuts and that it reaches all of, or whose windows lie end to end, and
/// whether elements held once are copies or terms.
constexpr layout canonical(layout x) {
  for (int a = x.mesh.axes.count - 1; a >= 0; --a) {
    const bool one = x.mesh.axes[a].extent == 1;
    if (!one && x.placements[a].kind != placement::on) continue;
    const int coordinate = x.placements[a].kind == placement::on ? x.placements[a].coordinate : 0;
    x.release(a);
    x.mesh = without_axis(x.mesh, a, coordinate);
    for (int i = a; i + 1 < x.placements.count; ++i) x.placements[i] = x.placements[i + 1];
    --x.placements.count;
  }
  for (int d = 0; d < x.dims.count; ++d) {
    if (x.dims[d].kind == cover::pending && x.dims[d].tiles()) x.dims[d].kind = cover::haloed;
    if (x.dims[d].windows_are_tiles()) {
      x.dims[d].set_grain(x.dims[d].grain() * x.dims[d].needs.a);
      x.dims[d].tile();
    }
    if (x.levels(d) == 0 && x.dims[d].reaches_all()) {
      x.dims[d].tile();
      x.dims[d].balance(1);
    } else {
      detail::tidy(x, d);
    }
  }
  return x;
}

/// Two layouts are the same when every worker holds the same elements with the same meaning.
constexpr bool same(const layout& a, const layout& b) {
  if (&a == &b) return true;
  const layout x = canonical(a);
  const layout y = canonical(b);
  if (!(x.mesh == y.mesh) || !(x.placements == y.placements) || x.dims.count != y.dims.count) return false;
  for (int d = 0; d < x.dims.count; ++d)
    if (x.dims[d].kind != y.dims[d].kind || !same_intervals(x.dims[d], y.dims[d], x.part_count(d))) return false;
  return true;
}

}  // namespace engine

/// The layout of the cotangent: replicate and partial, haloed and pending change places; the rest keeps its own.
constexpr layout cotangent(layout x) {
  for (int a = 0; a < x.placements.count; ++a) {
    if (x.placements[a].kind == placement::replicate) x.placements[a] = {placement::partial};
    else if (x.placements[a].kind == placement::partial) x.placements[a] = {placement::replicate};
  }
  for (int d = 0; d < x.dims.count; ++d)
    if (!x.dims[d].tiles()) x.dims[d].kind = x.dims[d].kind == cover::haloed ? cover::pending : cover::haloed;
  return x;
}

namespace engine {

/// Whether all pending combines are sums: others are for values only, so they have no cotangent.
constexpr bool only_sums(const layout& x) {
  for (const axis_placement& r : x.placements)
    if (r.kind == placement::partial && r.with != combine::sum) return false;
  return true;
}

/// Refuses an overflowing number of elements.
constexpr refusal check_count(const layout& x) {
  index_t n = 1;
  for (int d = 0; d < x.dims.count; ++d) {
    const index_t e = x.dims[d].extent;
    if (e == dynamic) continue;
    if (!detail::product_fits(n, e)) return refusal{code::count_overflows, d, e};
    n *= e;
  }
  return {};
}

}  // namespace engine

}  // namespace tessera
