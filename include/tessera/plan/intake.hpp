#pragma once

#include <tessera/meta/integer.hpp>
#include <tessera/meta/static_vector.hpp>

namespace tessera::detail {

// What a worker receives, and what of it is its own. On one mesh both are products over axes and dimensions:
//
//   elements = Π moved − Π own,   messages = Π peers − Π itself
struct intake {
  index_t moved = 0;   // elements: of a Move all that it needs, of a Fold all that readers send back
  index_t own = 0;     // elements of them that the worker takes from itself
  index_t peers = 0;   // boxes
  index_t itself = 0;  // boxes of them that are its own

  static constexpr intake of(index_t n) { return {n, n, n, n}; }

  constexpr intake& operator*=(const intake& by) {
    moved = capped_product(moved, by.moved);
    own = capped_product(own, by.own);
    peers = capped_product(peers, by.peers);
    itself = capped_product(itself, by.itself);
    return *this;
  }
  constexpr intake& operator+=(const intake& by) {
    moved = capped_sum(moved, by.moved);
    own = capped_sum(own, by.own);
    peers = capped_sum(peers, by.peers);
    itself = capped_sum(itself, by.itself);
    return *this;
  }
  friend constexpr intake operator*(intake a, const intake& b) { return a *= b; }

  // Whoever multiplies both by the same receives no less here.
  friend constexpr bool operator>=(const intake& a, const intake& b) {
    return a.moved >= b.moved && a.own <= b.own && a.peers >= b.peers && a.itself <= b.itself;
  }
};

// The intakes among which the busiest is, whatever they are multiplied by.
struct front {
  static_vector<intake, 64> best;
  bool full = false;  // there were more

  constexpr void add(const intake& s) {
    for (const intake& b : best)
      if (b >= s) return;
    int kept = 0;
    for (const intake& b : best)
      if (!(s >= b)) best[kept++] = b;
    best.resize(kept);
    full = full || kept == best.capacity;
    if (!full) best.push(s);
  }
};

}  // namespace tessera::detail
