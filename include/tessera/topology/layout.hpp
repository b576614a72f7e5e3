#pragma once

#include <tessera/topology/axis_placement.hpp>
#include <tessera/topology/dimension.hpp>
#include <tessera/topology/mesh_value.hpp>

namespace tessera {

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

/// Writes equal cuts of a dimension alike. Full turns are dropped. A joint cut that comes out even becomes one cut
/// after the other, of single elements where the last grain is whole. A zigzag always counts its axes together.
constexpr void tidy(layout& x, int d) {
  dimension& dim = x.dims[d];
  const int parts = x.part_count(d);
  dim.turned = ((dim.turned % parts) + parts) % parts;
  const index_t cut = dim.kind == cover::tiled ? dim.extent : dim.outputs;
  const bool even = cut != dynamic && ceil_divide(cut, dim.grain()) % dim.chunks(parts) == 0;
  if (dim.bounds == nullptr && !dim.zigzag && !even) return;
  for (axis_placement& r : x.placements)
    if (r.kind == placement::cut && r.dimension == d) r.joined = false;
  if (dim.zigzag && !even) return;
  if (dim.bounds == nullptr && cut % dim.grain() == 0) dim.set_grain(1);
}

}  // namespace detail

namespace engine {

/// Drops what makes no difference between layouts. That is: axes of extent 1, and axes held on one coordinate, which
/// the sub-mesh says; whether elements held once are copies or terms. Grain and window go where nothing cuts the
/// dimension and the window reaches all of it, or where windows lie end to end.
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
