#pragma once

#include <tessera/plan/cut.hpp>
#include <tessera/plan/image.hpp>
#include <tessera/plan/zigzag_deal.hpp>
#include <tessera/topology/layout.hpp>

#include <initializer_list>

namespace tessera::engine {

/// The parts of one dimension of a layout, in the order of their elements.
///
/// Closed forms give part k, the coordinates that hold part k, and the parts that touch an interval. A list of bounds
/// is searched by bisection instead. A part is one interval; under a periodic window or in a zigzag it may be two.
struct parts {
  dimension of;
  int dim_index = 0;                     ///< which dimension of the layout
  static_vector<int, max_axes> axes;     ///< which axes cut it, outermost first
  static_vector<int, max_axes> extents;  ///< and their extents
  /// into how many parts it is cut, one cut after the other: joined axes cut at once
  static_vector<int, max_axes> cuts;

  constexpr parts() = default;
  constexpr parts(const layout& x, int dim) : of(x.dims[dim]), dim_index(dim) {
    const int levels = x.levels(dim);
    if (levels == 0) of.balance(1);
    for (int l = 0; l < levels; ++l) {
      const int a = x.cutter(dim, l);
      const int p = x.mesh.axes[a].extent;
      axes.push(a);
      extents.push(p);
      if (l > 0 && x.placements[a].joined) cuts[cuts.count - 1] *= p;
      else cuts.push(p);
    }
  }

  constexpr int count() const {
    int n = 1;
    for (int p : extents) n *= p;
    return n;
  }

  /// The part that coordinates hold: their row-major number, turned.
  constexpr int at(const coordinates& c) const {
    int n = 0;
    for (int l = 0; l < axes.count; ++l) n = n * extents[l] + c[axes[l]];
    return by_number(n);
  }
  constexpr int by_number(int n) const { return of.turned == 0 ? n : turn(index_t{n} + of.turned); }

  /// The row-major number of the coordinates that hold part k.
  constexpr int number(int k) const { return of.turned == 0 ? k : turn(index_t{k} - of.turned); }

  /// Writes the coordinates that hold part k into c.
  constexpr void locate(int k, coordinates& c) const {
    k = number(k);
    for (int l = axes.count - 1; l >= 0; --l) {
      c[axes[l]] = k % extents[l];
      k /= extents[l];
    }
  }

  /// The elements that part k holds.
  constexpr intervals held(int k) const {
    if (of.kind != cover::tiled) return image(need(tile(of.outputs, k)), of.needs, of.extent);
    if (of.zigzag) return dealt().held(k);
    return {{tile(of.extent, k)}, 1};
  }

  /// The outputs that a window serves with part k.
  constexpr interval outputs(int k) const { return tile(of.outputs, k); }

  /// The parts [first, last) of each stretch among which are all that hold an element of `wanted`; no part is in two.
  using range = part_range;
  using ranges = static_vector<range, 3>;
  constexpr ranges touching(const interval& wanted) const {
    ranges list;
    if (wanted.empty()) return list;
    if (of.zigzag) {
      add(list, dealt().there(wanted));
      add(list, dealt().back(wanted));
    } else if (of.kind == cover::tiled) {
      list.push({holder(of.extent, wanted.lo), holder(of.extent, wanted.hi - 1) + 1});
    } else if (of.outputs > 0) {
      for (const interval& read : preimages(wanted, of.needs, of.extent, of.outputs)) add(list, serving(read));
    }
    return list;
  }

  /// How many parts hold an element of `wanted`; of tiles, not of what a window needs.
  ///
  /// Balanced parts that touch it each hold a unit of it, or where there are fewer units than parts, one unit each.
  constexpr index_t holders(const interval& wanted) const {
    if (wanted.empty()) return 0;
    if (of.zigzag) {
      index_t n = 0;
      for (const range& r : touching(wanted)) n += r.last - r.first;
      return n;
    }
    const range near{holder(of.extent, wanted.lo), holder(of.extent, wanted.hi - 1) + 1};
    if (of.bounds == nullptr)
      return detail::smaller(near.last - near.first,
                             detail::ceil_divide(wanted.hi, of.grain()) - wanted.lo / of.grain());
    index_t n = 0;
    for (int k = near.first; k < near.last; ++k) n += !tile(of.extent, k).empty();
    return n;
  }

  /// In how many intervals of parts it lies; of tiles. In a zigzag, where the last part holds two chunks side by side,
  /// these are more than parts.
  constexpr index_t pieces(const interval& wanted) const {
    return of.zigzag ? dealt().pieces(wanted) : holders(wanted);
  }

  /// How many elements the largest part holds. Of balanced tiles it is the first.
  constexpr index_t largest() const {
    if (of.kind == cover::tiled && of.bounds == nullptr && !of.zigzag) return tile(of.extent, 0).size();
    index_t most = 0;
    for (int k = 0; k < count(); ++k) most = detail::larger(most, size_of(held(k)));
    return most;
  }

  /// Whether each part here is a part of `outer` or lies in one, at the same coordinates: cut as it is, and perhaps
  /// further.
  constexpr bool refines(const parts& outer) const {
    if (!even() || !outer.even() || axes.count < outer.axes.count || cuts.count < outer.cuts.count) return false;
    bool alike = outer.axes.empty() || of.grain() == outer.of.grain();
    for (int l = 0; l < outer.axes.count; ++l) alike = alike && axes[l] == outer.axes[l];
    for (int l = 0; l < outer.cuts.count; ++l) alike = alike && cuts[l] == outer.cuts[l];
    return alike;
  }

  /// Whether each part here is what a window needs for balanced outputs, over balanced tiles along the same axis.
  constexpr bool slides_over(const parts& tiles) const {
    const auto plain = [](const parts& p) { return p.axes.count == 1 && p.of.in_order() && p.of.glued == 0; };
    const bool reaches_all = of.needs.unreached_before == 0 && of.needs.unreached_after == 0;
    return plain(*this) && plain(tiles) && axes[0] == tiles.axes[0] && tiles.of.kind == cover::tiled &&
           of.kind != cover::tiled && of.needs.edge == boundary::zero && of.needs.c == 1 && reaches_all;
  }

  /// Up to which coordinate such parts lie alike over the tiles around them.
  ///
  /// Lengths of tiles and of outputs change once each. Between, where the windows of one part advance as far as its
  /// tile does, all parts are alike whose windows reach no tile beyond.
  constexpr index_t alike_over(const parts& tiles, int x) const {
    const index_t p = extents[0];
    index_t first = 0;
    index_t last = p;
    for (const index_t change : {of.extent % p, of.outputs % p}) {
      if (change <= x) first = detail::larger(first, change);
      else last = detail::smaller(last, change);
    }
    const interval own = tiles.tile(of.extent, x);
    const interval made = tile(of.outputs, x);
    if (own.empty() || of.needs.a * made.size() != own.size()) return x + 1;
    const interval read = need(made);
    const index_t beyond = detail::larger(0, detail::larger(own.lo - read.lo, read.hi - own.hi));
    const index_t margin = detail::ceil_divide(beyond, own.size());
    return x >= first + margin && x < last - margin ? last - margin : x + 1;
  }

  /// Up to which coordinate of level l parts have the lengths that they have at x, whatever the other coordinates are;
  /// of even tiles.
  ///
  /// Inside P parts a cut finds ⌊u/P⌋ or ⌈u/P⌉ units, so lengths change where a remainder of these two ends.
  constexpr index_t alike_until(int l, index_t x) const {
    int stride = 1;
    for (int inner = l + 1; inner < extents.count; ++inner) stride *= extents[inner];
    const index_t units = of.extent / of.grain();
    index_t until = extents[l];
    index_t outside = 1;
    int inside = count();
    for (int p : cuts) {
      inside /= p;
      if (inside <= stride) {
        const index_t step = stride / inside;  // joined axes number the parts of their cut together
        const index_t rests[]{units / outside % p, detail::ceil_divide(units, outside) % p};
        for (index_t rest : rests) {
          rest %= step * extents[l];
          if (rest > x * step) until = detail::smaller(until, rest / step > x ? rest / step : x + 1);
        }
        break;
      }
      outside *= p;
    }
    return until;
  }

 private:
  constexpr int turn(index_t k) const { return static_cast<int>(detail::modulo(k, count())); }

  static constexpr void add(ranges& list, range r) {
    if (r.last <= r.first) return;
    int kept = 0;
    for (int i = 0; i < list.count; ++i) {
      const range other = list[i];
      if (other.last < r.first || r.last < other.first) list[kept++] = other;
      else r = {other.first < r.first ? other.first : r.first, other.last > r.last ? other.last : r.last};
    }
    list.resize(kept);
    list.push(r);
  }

  // Parts of outputs whose window reaches a stretch. Only a hull holds elements that lie between two windows, where the
  // ends may come in either order.
  constexpr range serving(const interval& read) const {
    const window& w = of.needs;
    const bool forwards = w.a > 0;
    const index_t from =
        forwards ? detail::ceil_divide(w.c * read.lo - w.b2, w.a) : detail::ceil_divide(w.b - w.c * read.hi + 1, -w.a);
    const index_t to = forwards ? detail::floor_divide(w.c * read.hi - 1 - w.b, w.a)
                                : detail::floor_divide(w.b2 - w.c * read.lo, -w.a);
    const index_t low = detail::smaller(from, to);
    const index_t high = detail::larger(from, to);
    if (w.edge != boundary::zero && (high < 0 || low >= of.outputs)) return {};
    return {holder(of.outputs, detail::clamped(low, 0, of.outputs - 1)),
            holder(of.outputs, detail::clamped(high, 0, of.outputs - 1)) + 1};
  }

  // Balanced tiles of whole grains, dealt in order.
  constexpr bool even() const { return of.kind == cover::tiled && of.in_order() && of.extent % of.grain() == 0; }

  constexpr zigzag_deal dealt() const { return {of.extent, of.grain(), count()}; }

  constexpr index_t bound(int k) const {
    if (of.bounds == learned) stop(refusal{code::lengths_not_known, dim_index});
    return of.bounds[k];
  }

  // Each cut cuts what the cut before it left, in units of a grain.
  constexpr interval tile(index_t n, int k) const {
    if (of.bounds != nullptr)
      return {detail::smaller(n, bound(k) * of.grain()), detail::smaller(n, bound(k + 1) * of.grain())};
    index_t lo = 0;
    index_t hi = detail::ceil_divide(n, of.grain());
    int inner = count();
    for (int p : cuts) {
      inner /= p;
      const int i = k / inner;
      k -= i * inner;
      const index_t length = hi - lo;
      hi = lo + cut(length, p, i + 1);
      lo = lo + cut(length, p, i);
    }
    return {detail::smaller(n, lo * of.grain()), detail::smaller(n, hi * of.grain())};
  }

  constexpr int holder(index_t n, index_t x) const {
    if (of.bounds != nullptr) {
      int first = 0;  // the last part that begins at or before x
      for (int last = count(); last - first > 1;) {
        const int middle = first + (last - first) / 2;
        (bound(middle) <= x / of.grain() ? first : last) = middle;
      }
      return first;
    }
    index_t lo = 0;
    index_t hi = detail::ceil_divide(n, of.grain());
    const index_t unit = x / of.grain();
    int k = 0;
    for (int p : cuts) {
      const index_t length = hi - lo;
      const index_t i = owner(length, p, unit - lo);
      k = k * p + static_cast<int>(i);
      hi = lo + cut(length, p, i + 1);
      lo = lo + cut(length, p, i);
    }
    return k;
  }

  // The inputs between the windows' begins and ends; no outputs need no inputs. Of windows that step backwards the last
  // begins first.
  constexpr interval need(const interval& outputs) const {
    if (outputs.empty()) return {};
    const index_t lowest = of.needs.a > 0 ? outputs.lo : outputs.hi - 1;
    const index_t highest = of.needs.a > 0 ? outputs.hi - 1 : outputs.lo;
    return {of.needs.first(lowest), of.needs.last(highest) + 1};
  }
};

}  // namespace tessera::engine
