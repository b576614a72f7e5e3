#pragma once

#include <tessera/meta/integer.hpp>
#include <tessera/meta/static_vector.hpp>

namespace tessera::detail {

// What a worker receives, and what of it is its own. On one mesh both are products over axes and dimensions:
//
//   elements = Π moved − Π own,   messages = Π peers − Π itself
struct receive_count {
  index_t moved = 0;   // elements: of a Move all that it needs, of a Fold all that readers send back
  index_t own = 0;     // elements of them that the worker takes from itself
  index_t peers = 0;   // boxes
  index_t itself = 0;  // boxes of them that are its own

  static constexpr receive_count of(index_t n) { return {n, n, n, n}; }

  constexpr receive_count& operator*=(const receive_count& by) {
    moved = capped_product(moved, by.moved);
    own = capped_product(own, by.own);
    peers = capped_product(peers, by.peers);
    itself = capped_product(itself, by.itself);
    return *this;
  }
  constexpr receive_count& operator+=(const receive_count& by) {
    moved = capped_sum(moved, by.moved);
    own = capped_sum(own, by.own);
    peers = capped_sum(peers, by.peers);
    itself = capped_sum(itself, by.itself);
    return *this;
  }
  friend constexpr receive_count operator*(receive_count a, const receive_count& b) { return a *= b; }

  // Whoever multiplies both by the same receives no less here.
  friend constexpr bool operator>=(const receive_count& a, const receive_count& b) {
    return a.moved >= b.moved && a.own <= b.own && a.peers >= b.peers && a.itself <= b.itself;
  }
};

// The counts among which the busiest is, whatever they are multiplied by.
struct front {
  static_vector<receive_count, 64> best;
  bool full = false;  // there were more

  constexpr void add(const receive_count& s) {
    for (const receive_count& b : best)
      if (b >= s) return;
    int kept = 0;
    for (const receive_count& b : best)
      if (!(s >= b)) best[kept++] = b;
    best.resize(kept);
    full = full || kept == best.capacity;
    if (!full) best.push(s);
  }
};

}  // namespace tessera::detail
