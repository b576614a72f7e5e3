#pragma once

#include <tessera/plan/cut.hpp>
#include <tessera/plan/interval.hpp>

namespace tessera {

/// The parts of one dimension of a layout, numbered row-major over the axes that cut it.
///
/// Part k is found from k, and the parts that touch an interval from the interval, both in closed form.
struct parts {
  dimension of;
  static_vector<int, max_axes> axes;     ///< which axes cut it, outermost first
  static_vector<int, max_axes> extents;  ///< and their extents

  constexpr parts() = default;
  constexpr parts(const layout& x, int dim) : of(x.dims[dim]) {
    const int levels = x.levels(dim);
    for (int l = 0; l < levels; ++l) {
      const int a = x.cutting(dim, l);
      axes.push(a);
      extents.push(x.mesh.axes[a].extent);
    }
  }

  constexpr int count() const {
    int n = 1;
    for (int p : extents) n *= p;
    return n;
  }

  /// The part that coordinates hold.
  constexpr int at(const coordinates& c) const {
    int k = 0;
    for (int l = 0; l < axes.count; ++l) k = k * extents[l] + c[axes[l]];
    return k;
  }

  /// Writes the coordinates of part k into c.
  constexpr void locate(int k, coordinates& c) const {
    for (int l = axes.count - 1; l >= 0; --l) {
      c[axes[l]] = k % extents[l];
      k /= extents[l];
    }
  }

  /// The elements that part k holds.
  constexpr intervals held(int k) const {
    intervals list;
    list.push(of.kind == cover::tiled ? tile(of.extent, k) : hull(tile(of.outputs, k)));
    return list;
  }

  /// The parts [first, last) among which are all that hold an element of `wanted`.
  struct range {
    int first = 0;
    int last = 0;
  };
  constexpr range touching(const interval& wanted) const {
    if (wanted.empty()) return {};
    if (of.kind == cover::tiled) return {holder(of.extent, wanted.lo), holder(of.extent, wanted.hi - 1) + 1};
    // Outputs whose window reaches the interval; between two windows lie elements that only a hull holds, so the ends may
    // come in either order.
    const window& w = of.needs;
    const index_t from = detail::ceil_divide(w.c * wanted.lo - w.b2, w.a);
    const index_t to = detail::floor_divide(w.c * wanted.hi - 1 - w.b, w.a);
    if (of.outputs == 0) return {};
    const index_t low = detail::clamp(detail::smaller(from, to), 0, of.outputs - 1);
    const index_t high = detail::clamp(detail::larger(from, to), 0, of.outputs - 1);
    return {holder(of.outputs, low), holder(of.outputs, high) + 1};
  }

 private:
  // Each axis cuts what the axis before it left, in units of a grain.
  constexpr interval tile(index_t n, int k) const {
    if (of.lengths != nullptr) {
      index_t lo = 0;
      for (int i = 0; i < k; ++i) lo += of.lengths[i];
      return {lo, lo + of.lengths[k]};
    }
    index_t lo = 0;
    index_t hi = detail::ceil_divide(n, of.grain());
    int inner = count();
    for (int l = 0; l < extents.count; ++l) {
      inner /= extents[l];
      const int i = k / inner % extents[l];
      const index_t length = hi - lo;
      hi = lo + cut(length, extents[l], i + 1);
      lo = lo + cut(length, extents[l], i);
    }
    return {detail::smaller(n, lo * of.grain()), detail::smaller(n, hi * of.grain())};
  }

  constexpr int holder(index_t n, index_t x) const {
    if (of.lengths != nullptr) {
      int k = 0;
      for (index_t end = of.lengths[0]; end <= x; end += of.lengths[k]) ++k;
      return k;
    }
    index_t lo = 0;
    index_t hi = detail::ceil_divide(n, of.grain());
    const index_t unit = x / of.grain();
    int k = 0;
    for (int p : extents) {
      const index_t length = hi - lo;
      const index_t i = owner(length, p, unit - lo);
      k = k * p + static_cast<int>(i);
      hi = lo + cut(length, p, i + 1);
      lo = lo + cut(length, p, i);
    }
    return k;
  }

  // The inputs between the first window's begin and the last window's end; no outputs need no inputs.
  constexpr interval hull(const interval& outputs) const {
    if (outputs.empty()) return {0, 0};
    return {detail::clamp(of.needs.first(outputs.lo), 0, of.extent),
            detail::clamp(of.needs.last(outputs.hi - 1) + 1, 0, of.extent)};
  }
};

/// The parts of every dimension of a layout: what the questions about its boxes start from.
struct cutting {
  layout of;
  static_vector<parts, max_dimensions> dims;

  constexpr cutting() = default;
  constexpr explicit cutting(const layout& x) : of(x) {
    for (int d = 0; d < x.dims.count; ++d) dims.push(parts{x, d});
  }

  /// Whether coordinates hold anything at all: axes with a meaning `on` name the coordinate that does.
  constexpr bool holds(const coordinates& c) const {
    for (int a = 0; a < of.roles.count; ++a)
      if (of.roles[a].kind == role::on && of.roles[a].coordinate != c[a]) return false;
    return true;
  }

  /// Finds the coordinates of a world rank that holds a part; false for all others.
  constexpr bool locate(int rank, coordinates& c) const { return of.mesh.locate(rank, c) && holds(c); }

  /// The intervals that coordinates hold of a dimension.
  constexpr intervals held(int dim, const coordinates& c) const { return dims[dim].held(dims[dim].at(c)); }

  /// The hull of what a world rank holds, in global indices; empty in every dimension when it holds nothing.
  constexpr box box_of(int rank) const {
    box b;
    coordinates c;
    const bool here = locate(rank, c);
    for (int d = 0; d < dims.count; ++d) b.push(here ? held(d, c)[0] : interval{});
    return b;
  }

  /// The number of elements that a world rank holds.
  constexpr index_t elements_of(int rank) const {
    coordinates c;
    if (!locate(rank, c)) return 0;
    index_t n = 1;
    for (int d = 0; d < dims.count; ++d) n *= size_of(held(d, c));
    return n;
  }
};

/// The box of the global tensor that a world rank holds under a layout.
constexpr box box_of(const layout& x, int rank) { return cutting{x}.box_of(rank); }

}  // namespace tessera
