#pragma once

#include <tessera/plan/cost.hpp>
#include <tessera/plan/receive_count.hpp>
#include <tessera/plan/transfer.hpp>

#include <initializer_list>

namespace tessera::detail {

// Counts what a plan on one mesh moves.
//
// Dimensions that share an axis form a group. Totals are products over groups; the busiest worker is among the products
// of each group's largest few. The axes of a group are walked one inside the other, over runs of coordinates that do
// not differ. A dimension's factor is formed as soon as the axes that it depends on are fixed.
class aligned_cost {
 public:
  constexpr explicit aligned_cost(const transfer& plan)
      : source_(plan.source()), target_(plan.target()), folds_(plan.kind() == map::fold) {
    best_.best.push(receive_count::of(1));
    at_.resize(source_.of.placements.count);
    for (int d = 0; d < source_.dims.count; ++d) {
      axis_group g;
      collect(g, d);
      count(g);
    }
    for (int a = 0; a < at_.count; ++a) {
      axis_group g;
      collect_axis(g, a);
      count(g);
    }
  }

  constexpr cost total() const {
    cost c;
    const receive_count sums = sums_ * whole_;
    c.total = capped_difference(sums.moved, sums.own);
    c.lower_bound = c.total;  // nobody receives what it holds
    c.messages = capped_difference(sums.peers, sums.itself);
    for (const receive_count& best : best_.best) {
      const receive_count s = best * whole_;
      c.busiest = larger(c.busiest, capped_difference(s.moved, s.own));
      c.busiest_messages = larger(c.busiest_messages, capped_difference(s.peers, s.itself));
    }
    return c;
  }

  // More counts may be the busiest than are kept: it must be counted worker by worker.
  constexpr bool overflows() const { return best_.full; }

 private:
  struct axis_group {
    static_vector<int, max_dimensions> dims;
    static_vector<int, max_axes> axes;
    unsigned uneven = 0;  // axes whose coordinates differ in more than the lengths of parts
    receive_count sums;
    front best;
  };

  constexpr int extent(int a) const { return source_.of.mesh.axes[a].extent; }
  static constexpr bool cuts(const axis_placement& r) { return r.kind == placement::cut; }
  static constexpr bool copies(const axis_placement& r) { return r.kind != placement::cut && r.kind != placement::on; }
  static constexpr bool holds(const axis_placement& r, int x) { return r.kind != placement::on || r.coordinate == x; }

  static constexpr bool uncut(const parts& p) { return p.axes.empty() && p.of.kind == cover::tiled; }

  // A dimension and all that share its axes, unless they are in a group; one that nobody cuts is a factor of every
  // count.
  constexpr void collect(axis_group& g, int d) {
    if (dims_seen_ >> d & 1u) return;
    dims_seen_ |= 1u << d;
    const parts& tiles = source_.dims[d];
    const parts& readers = target_.dims[d];
    if (uncut(tiles) && uncut(readers)) {
      const index_t n = tiles.of.extent;
      whole_ *= {n, n, n > 0, n > 0};
      return;
    }
    g.dims.push(d);
    const bool even = tiles.refines(readers) || readers.refines(tiles) || readers.slides_over(tiles);
    for (const parts* p : {&tiles, &readers})
      for (int a : p->axes) {
        if (!even) g.uneven |= 1u << a;
        collect_axis(g, a);
      }
  }

  constexpr void collect_axis(axis_group& g, int a) {
    if (axes_seen_ >> a & 1u) return;
    axes_seen_ |= 1u << a;
    g.axes.push(a);
    for (const cutting* side : {&source_, &target_})
      if (const axis_placement& r = side->of.placements[a]; cuts(r)) collect(g, r.dimension);
  }

  constexpr void count(axis_group& g) {
    if (g.dims.empty() && g.axes.empty()) return;
    for (int i = 0; i < g.axes.count; ++i) {
      const axis_placement& s = source_.of.placements[g.axes[i]];
      const axis_placement& t = target_.of.placements[g.axes[i]];
      for (const axis_placement& r : {s, t})
        if (cuts(r)) own_after_[r.dimension] = i + 1;
      if (folds_ && cuts(s)) received_after_[s.dimension] = i + 1;
      if (cuts(t) && (!folds_ || copies(s))) received_after_[t.dimension] = i + 1;
    }
    walk(g, 0, receive_count::of(1), 1);
    sums_ *= g.sums;
    front both;
    both.full = best_.full || g.best.full;
    for (const receive_count& x : best_.best)
      for (const receive_count& y : g.best.best) both.add(x * y);
    best_ = both;
  }

  // The first `fixed` axes have coordinates, which stand for `times` others.
  constexpr void walk(axis_group& g, int fixed, receive_count s, index_t times) {
    for (int d : g.dims) {
      if (fixed == received_after_[d]) s *= received(d);
      if (fixed == own_after_[d]) s *= own(d);
    }
    if (fixed == g.axes.count) {
      g.best.add(s);
      g.sums += s * receive_count::of(times);
      return;
    }
    const int a = g.axes[fixed];
    for (int x = 0; x < extent(a);) {
      const int until = alike_until(g, a, x);
      at_[a] = x;
      walk(g, fixed + 1, s * along(a, x), times * (until - x));
      x = until;
    }
  }

  constexpr int alike_until(const axis_group& g, int a, int x) const {
    if (g.uneven >> a & 1u) return x + 1;
    index_t until = extent(a);
    for (const cutting* side : {&source_, &target_}) {
      const axis_placement& r = side->of.placements[a];
      if (r.kind == placement::on && r.coordinate >= x)
        until = smaller(until, x == r.coordinate ? x + 1 : r.coordinate);
      if (!cuts(r)) continue;
      const parts& tiles = source_.dims[r.dimension];
      const parts& readers = target_.dims[r.dimension];
      until = smaller(until, readers.slides_over(tiles) ? readers.alike_over(tiles, x)
                                                        : side->dims[r.dimension].alike_until(r.level, x));
    }
    return static_cast<int>(until);
  }

  // The factor of an axis at a coordinate; 0 for a coordinate that holds nothing. In a Fold the factor counts the
  // readers that a tile serves there. Where the source has copies, each serves the readers at its own coordinate.
  // Readers whose parts the axis cuts are counted by dimension.
  constexpr receive_count along(int a, int x) const {
    const axis_placement& s = source_.of.placements[a];
    const axis_placement& t = target_.of.placements[a];
    const bool tile = holds(s, x);
    const bool reads = holds(t, x);
    index_t times = reads;
    if (folds_ && !copies(s)) times = !tile ? 0 : copies(t) ? extent(a) : 1;
    return {times, tile && reads, times, tile && reads};
  }

  // What a worker receives in a dimension. A Move: what it needs, in one box from each interval of a tile. A Fold: what
  // readers hold of its tile.
  constexpr receive_count received(int d) const {
    const parts& theirs = (folds_ ? target_ : source_).dims[d];
    bool once = theirs.of.kind == cover::tiled;
    for (int a : theirs.axes) once = once && !copies(source_.of.placements[a]);
    receive_count s{0, 1, 0, 1};
    for (const interval& mine : (folds_ ? source_ : target_).held(d, at_))
      if (once) s += {mine.size(), 0, theirs.pieces(mine), 0};
      else s += overlaps(theirs, mine);
    return s;
  }

  // Copies of the source serve readers at their own coordinates alone.
  constexpr receive_count overlaps(const parts& readers, const interval& mine) const {
    receive_count s;
    coordinates c = at_;
    for (const auto& near : readers.touching(mine))
      for (int k = near.first; k < near.last; ++k) {
        readers.locate(k, c);
        bool served = true;
        for (int a : readers.axes) served = served && (!copies(source_.of.placements[a]) || c[a] == at_[a]);
        if (!served) continue;
        for (const interval& theirs : readers.held(k)) {
          const interval both = overlap(mine, theirs);
          s += {both.size(), 0, !both.empty(), 0};
        }
      }
    return s;
  }

  // What it has of that itself.
  constexpr receive_count own(int d) const {
    receive_count s{1, 0, 1, 0};
    for (const interval& needed : target_.held(d, at_))
      for (const interval& tile : source_.held(d, at_)) {
        const interval both = overlap(needed, tile);
        s += {0, both.size(), 0, !both.empty()};
      }
    return s;
  }

  const cutting& source_;
  const cutting& target_;
  bool folds_;
  unsigned dims_seen_ = 0;
  unsigned axes_seen_ = 0;
  int received_after_[max_dimensions]{};  // after how many axes of its group a dimension's factors are known
  int own_after_[max_dimensions]{};
  coordinates at_;
  receive_count whole_ = receive_count::of(1);
  receive_count sums_ = receive_count::of(1);
  front best_;
};

}  // namespace tessera::detail
