#pragma once

#include <tessera/plan/transfer.hpp>

namespace tessera {

/// What a plan moves, in elements and messages; what a worker takes from itself counts for neither.
struct cost {
  index_t total = 0;             ///< elements received by all workers
  index_t busiest = 0;           ///< elements received by the worker that receives most
  index_t lower_bound = 0;       ///< total of what workers need and do not hold (of a Fold the mirror)
  index_t messages = 0;          ///< of all workers
  index_t busiest_messages = 0;  ///< received by the worker that receives most messages

  constexpr cost& operator+=(const cost& other) {
    total += other.total;
    busiest += other.busiest;
    lower_bound += other.lower_bound;
    messages += other.messages;
    busiest_messages += other.busiest_messages;
    return *this;
  }
  friend constexpr bool operator==(const cost&, const cost&) = default;
};

namespace detail {

// On one mesh every dimension's share of a worker's traffic depends on the axes that cut it alone. Dimensions that share
// an axis form a group; a worker's traffic is a product over groups, less what it takes from itself:
//
//   elements(c) = Π_g moved_g(c_g) − Π_g own_g(c_g),   messages(c) = Π_g peers_g(c_g) − Π_g itself_g(c_g)
//
// so totals are products of sums, and the busiest worker is found among each group's best few.
struct share {
  index_t needed = 0;  // elements of the reader's box
  index_t moved = 0;   // elements received: of a Move needed, of a Fold all that readers send back
  index_t own = 0;     // elements of it that the worker takes from itself
  index_t peers = 0;   // boxes received
  index_t itself = 0;  // how many of them are its own
};

struct front {
  static_vector<share, 64> best;

  constexpr void add(const share& s) {
    for (const share& b : best)
      if (b.moved >= s.moved && b.own <= s.own && b.peers >= s.peers && b.itself <= s.itself) return;
    int kept = 0;
    for (const share& b : best)
      if (!(s.moved >= b.moved && s.own <= b.own && s.peers >= b.peers && s.itself <= b.itself)) best[kept++] = b;
    best.resize(kept);
    if (best.count < best.capacity)
      best.push(s);
    else
      full = true;
  }

  bool full = false;  // more of them than fit: the busiest must be counted worker by worker
};

class aligned_cost {
 public:
  constexpr explicit aligned_cost(const transfer& plan) : plan_(plan), axes_(plan.source().of.mesh.axes.count) {}

  constexpr cost count() {
    share sums{1, 1, 1, 1, 1};
    front busiest;
    busiest.best.push(sums);
    for (int a = 0; a < axes_; ++a)
      if (free_copies(a)) repeat(sums, a);
    for (int d = 0; d < plan_.source().dims.count; ++d) {
      if (done_ >> d & 1u) continue;
      unsigned axes = 0;
      unsigned dims = 0;
      collect(d, axes, dims);
      done_ |= dims;
      add_group(axes, dims, sums, busiest);
    }
    cost c;
    c.total = (sums.moved - sums.own);
    c.messages = (sums.peers - sums.itself);
    c.lower_bound = (sums.needed - sums.own);
    for (const share& s : busiest.best) {
      c.busiest = larger(c.busiest, s.moved - s.own);
      c.busiest_messages = larger(c.busiest_messages, s.peers - s.itself);
    }
    overflows_ = busiest.full;
    return c;
  }

  constexpr bool overflows() const { return overflows_; }

 private:
  constexpr role source_role(int a) const { return plan_.source().of.roles[a].kind; }
  constexpr role target_role(int a) const { return plan_.target().of.roles[a].kind; }

  // An axis that cuts nothing on either side repeats everything along it.
  constexpr bool free_copies(int a) const { return source_role(a) != role::cut && target_role(a) != role::cut; }
  constexpr void repeat(share& s, int a) const {
    const index_t p = plan_.source().of.mesh.axes[a].extent;
    s.needed *= p;
    s.moved *= p;
    s.own *= p;
    s.peers *= p;
    s.itself *= p;
  }

  constexpr void collect(int d, unsigned& axes, unsigned& dims) const {
    if (dims >> d & 1u) return;
    dims |= 1u << d;
    for (int a = 0; a < axes_; ++a) {
      const axis_role& s = plan_.source().of.roles[a];
      const axis_role& t = plan_.target().of.roles[a];
      const bool cuts = (s.kind == role::cut && s.dimension == d) || (t.kind == role::cut && t.dimension == d);
      if (!cuts || (axes >> a & 1u)) continue;
      axes |= 1u << a;
      if (s.kind == role::cut) collect(s.dimension, axes, dims);
      if (t.kind == role::cut) collect(t.dimension, axes, dims);
    }
  }

  constexpr void add_group(unsigned axes, unsigned dims, share& sums, front& busiest) const {
    const mesh_value& mesh = plan_.source().of.mesh;
    share total;
    front group;
    coordinates c;
    c.resize(axes_);
    while (true) {
      const share s = at(dims, c);
      total.needed += s.needed;
      total.moved += s.moved;
      total.own += s.own;
      total.peers += s.peers;
      total.itself += s.itself;
      group.add(s);
      int a = axes_ - 1;
      for (; a >= 0; --a) {
        if ((axes >> a & 1u) == 0) continue;
        if (++c[a] < mesh.axes[a].extent) break;
        c[a] = 0;
      }
      if (a < 0) break;
    }
    multiply(sums, total);
    front both;
    both.full = busiest.full || group.full;
    for (const share& x : busiest.best)
      for (const share& y : group.best) {
        share z = x;
        multiply(z, y);
        both.add(z);
      }
    busiest = both;
  }

  static constexpr void multiply(share& into, const share& by) {
    into.needed *= by.needed;
    into.moved *= by.moved;
    into.own *= by.own;
    into.peers *= by.peers;
    into.itself *= by.itself;
  }

  // What the coordinates c exchange in the dimensions of one group, read as source (Fold) and as target (Move).
  constexpr share at(unsigned dims, const coordinates& c) const {
    share s{1, 1, 1, 1, 1};
    for (int d = 0; d < plan_.source().dims.count; ++d) {
      if ((dims >> d & 1u) == 0) continue;
      const intervals needed = plan_.target().held(d, c);
      const intervals tile = plan_.source().held(d, c);
      index_t own = 0;
      index_t itself = 0;
      for (const interval& a : needed)
        for (const interval& b : tile) {
          own += overlap(a, b).size();
          itself += overlap(a, b).empty() ? 0 : 1;
        }
      s.needed *= size_of(needed);
      s.own *= own;
      s.itself *= itself;
      index_t peers = 0;
      index_t moved = 0;
      if (plan_.what() == map::move) {
        moved = size_of(needed);
        count(plan_.source().dims[d], needed, c, false, peers, moved);
      } else {
        count(plan_.target().dims[d], tile, c, true, peers, moved);
      }
      s.moved *= moved;
      s.peers *= peers;
    }
    if (plan_.what() == map::fold)
      for (int a = 0; a < axes_; ++a) {
        const axis_role& from = plan_.source().of.roles[a];
        if (from.kind != role::cut || (dims >> from.dimension & 1u) == 0) continue;
        if (target_role(a) == role::cut) continue;  // counted with the parts of its dimension
        const index_t p = plan_.source().of.mesh.axes[a].extent;
        s.moved *= p;  // every coordinate along this axis holds a term
        s.peers *= p;
      }
    return s;
  }

  // The parts of a dimension that meet `wanted`; copies are served by their own coordinates, so axes that only the other
  // side cuts are pinned.
  constexpr void count(const parts& other, const intervals& wanted, const coordinates& c, bool readers, index_t& peers,
                       index_t& moved) const {
    coordinates k_at;
    k_at.resize(axes_);
    for (const interval& w : wanted) {
      for (const auto& near : other.touching(w))
        for (int k = near.first; k < near.last; ++k) {
          other.locate(k, k_at);
          bool served = true;
          for (int a : other.axes) served = served && (!readers || source_role(a) == role::cut || k_at[a] == c[a]);
          if (!served) continue;
          for (const interval& o : other.held(k)) {
            const index_t n = overlap(w, o).size();
            if (n == 0) continue;
            ++peers;
            if (readers) moved += n;
          }
        }
    }
  }

  const transfer& plan_;
  int axes_;
  bool overflows_ = false;
  unsigned done_ = 0;
};

}  // namespace detail

}  // namespace tessera
