#pragma once

#include <tessera/topology/mesh_value.hpp>
#include <tessera/topology/window.hpp>

namespace tessera {

/// What an axis of the mesh does to a tensor: it cuts one dimension, or it has a meaning.
///
///  replicate  equal copies that each worker may use differently; the gradient is partial
///  partial    terms of a pending combine; the gradient is replicate
///  invariant  equal copies that all use alike; the gradient is invariant
///  on         only one coordinate holds it
///  cut        each coordinate holds its part of a dimension
enum class role : signed char { replicate, partial, invariant, on, cut };

/// How terms combine; every one but `sum` is for values only and has no gradient.
enum class combine : signed char { sum, max, min };

/// The role of one axis, with what belongs to it.
struct axis_role {
  role kind = role::replicate;
  signed char dimension = 0;   ///< cut: which dimension
  signed char level = 0;       ///< cut: its place among the axes that cut this dimension, outermost 0
  combine with = combine::sum; ///< partial: how the terms combine
  int coordinate = 0;          ///< on: which coordinate

  friend constexpr bool operator==(const axis_role&, const axis_role&) = default;
};

/// How the parts of a dimension relate to its elements.
///
///  tiled    each element is in one part
///  haloed   parts are what a window needs for the parts of its outputs: copies, they may overlap
///  pending  the cotangent of haloed: the same intervals, but terms until they are folded
enum class cover : signed char { tiled, haloed, pending };

/// One dimension of a tensor: its extent and how it is cut.
struct dimension {
  index_t extent = 0;
  text tag;                          ///< the name of a dynamic extent
  index_t glued = 0;                 ///< elements that are never split from the one before them: grain − 1
  const index_t* lengths = nullptr;  ///< explicit lengths of the parts, owned elsewhere
  cover kind = cover::tiled;
  index_t outputs = 0;               ///< haloed: extent of the dimension whose parts the window serves
  window needs;                    ///< haloed: which inputs an output needs

  /// How many elements are never split.
  constexpr index_t grain() const { return glued + 1; }
  constexpr void set_grain(index_t elements) { glued = elements - 1; }

  friend constexpr bool operator==(const dimension&, const dimension&) = default;
};

/// How a tensor lies over a mesh, as a value: for each axis of the mesh its role, for each dimension its cover.
///
/// An axis has exactly one role, so no axis can be used twice.
struct layout {
  mesh_value mesh;
  static_vector<axis_role, max_axes> roles;        ///< one for each axis of the mesh
  static_vector<dimension, max_dimensions> dims;  ///< one for each dimension of the tensor

  constexpr int rank() const { return dims.count; }

  /// How many axes cut a dimension.
  constexpr int levels(int dim) const {
    int n = 0;
    for (const auto& r : roles) n += r.kind == role::cut && r.dimension == dim;
    return n;
  }

  /// The axis that cuts a dimension at a level, or -1.
  constexpr int cutting(int dim, int level) const {
    for (int a = 0; a < roles.count; ++a)
      if (roles[a].kind == role::cut && roles[a].dimension == dim && roles[a].level == level) return a;
    return -1;
  }

  /// Numbers the axes that cut a dimension 0, 1, … in the order they have, where some were left out.
  constexpr void close_levels(int dim) {
    int next = 0;
    for (int level = 0; level < max_axes; ++level) {
      const int a = cutting(dim, level);
      if (a >= 0) roles[a].level = static_cast<signed char>(next++);
    }
  }

  /// Makes an axis cut a dimension inside all axes that cut it already.
  constexpr void cut_by(int dim, int axis) {
    roles[axis] = {role::cut, static_cast<signed char>(dim), static_cast<signed char>(levels(dim))};
  }

  /// Gives an axis a meaning; the axes that cut its dimension inside it move up one level.
  constexpr void mean(int axis, axis_role what) {
    const axis_role before = roles[axis];
    roles[axis] = what;
    if (before.kind == role::cut)
      for (int a = 0; a < roles.count; ++a)
        if (roles[a].kind == role::cut && roles[a].dimension == before.dimension && roles[a].level > before.level)
          --roles[a].level;
  }

  /// The roles that the types name are kept as they are, for printing; equality is `same`.
  friend constexpr bool operator==(const layout&, const layout&) = default;
};

/// Drops what makes no difference: axes of extent 1, axes held on one coordinate (their sub-mesh says it), the grain and
/// the window of dimensions that nothing cuts.
constexpr layout canonical(layout x) {
  for (int a = x.mesh.axes.count - 1; a >= 0; --a) {
    const bool one = x.mesh.axes[a].extent == 1;
    if (!one && x.roles[a].kind != role::on) continue;
    if (!one && x.mesh.ranks != nullptr) continue;
    const int coordinate = x.roles[a].kind == role::on ? x.roles[a].coordinate : 0;
    x.mean(a, {});
    if (x.mesh.ranks == nullptr) {
      x.mesh = without_axis(x.mesh, a, coordinate);
    } else {
      for (int i = a; i + 1 < x.mesh.axes.count; ++i) x.mesh.axes[i] = x.mesh.axes[i + 1];
      --x.mesh.axes.count;
    }
    for (int i = a; i + 1 < x.roles.count; ++i) x.roles[i] = x.roles[i + 1];
    --x.roles.count;
  }
  for (int d = 0; d < x.dims.count; ++d)
    if (x.levels(d) == 0 && x.dims[d].kind == cover::tiled) {
      x.dims[d].set_grain(1);
      x.dims[d].lengths = nullptr;
    }
  return x;
}

/// Two dimensions that the same axes cut into `parts` parts have the same intervals, be they copies or terms.
constexpr bool same_intervals(const dimension& p, const dimension& q, int parts) {
  if (p.extent != q.extent || p.grain() != q.grain()) return false;
  if ((p.kind == cover::tiled) != (q.kind == cover::tiled)) return false;
  if (p.kind != cover::tiled && (p.outputs != q.outputs || !(p.needs == q.needs))) return false;
  if ((p.lengths == nullptr) != (q.lengths == nullptr)) return false;
  for (int i = 0; p.lengths != nullptr && i < parts; ++i)
    if (p.lengths[i] != q.lengths[i]) return false;
  return true;
}

/// Two layouts are the same when every worker holds the same elements with the same meaning.
constexpr bool same(const layout& a, const layout& b) {
  const layout x = canonical(a);
  const layout y = canonical(b);
  if (!(x.mesh == y.mesh) || !(x.roles == y.roles) || x.dims.count != y.dims.count) return false;
  for (int d = 0; d < x.dims.count; ++d) {
    const int parts = x.dims[d].lengths != nullptr ? x.mesh.axes[x.cutting(d, 0)].extent : 0;
    if (x.dims[d].kind != y.dims[d].kind || !same_intervals(x.dims[d], y.dims[d], parts)) return false;
  }
  return true;
}

/// The layout of the cotangent: replicate and partial, haloed and pending change places; the rest keeps its own.
constexpr layout cotangent(layout x) {
  for (int a = 0; a < x.roles.count; ++a) {
    if (x.roles[a].kind == role::replicate)
      x.roles[a] = {role::partial};
    else if (x.roles[a].kind == role::partial)
      x.roles[a] = {role::replicate};
  }
  for (int d = 0; d < x.dims.count; ++d)
    if (x.dims[d].kind != cover::tiled) x.dims[d].kind = x.dims[d].kind == cover::haloed ? cover::pending : cover::haloed;
  return x;
}

/// Gives every dynamic extent named `tag` its value.
constexpr layout bound(layout x, const text& tag, index_t extent) {
  for (int d = 0; d < x.dims.count; ++d)
    if (x.dims[d].extent == dynamic && x.dims[d].tag == tag) x.dims[d].extent = extent;
  return x;
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

}  // namespace tessera
