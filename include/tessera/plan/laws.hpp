#pragma once

#include <tessera/plan/change.hpp>
#include <tessera/plan/proof.hpp>

namespace tessera::engine::laws {

/// Every worker's messages tile its box: each element that it holds afterwards has arrived exactly once (of a Move).
constexpr bool delivers_once(const transfer& plan, int rank) {
  index_t arrived = 0;
  bool inside = true;
  const bool move = plan.kind() == map::move;
  const holding target = plan.target().held_by(rank);
  const auto add = [&](const message& m) {
    arrived += volume(m.where);
    for (int d = 0; d < m.where.count; ++d)
      inside = inside && position(target[d], m.where[d].lo) >= 0 &&
               position(target[d], m.where[d].hi - 1) == position(target[d], m.where[d].lo) + m.where[d].size() - 1;
  };
  if (move) plan.receives(rank, add);
  else plan.sends(rank, add);
  return inside && arrived == plan.target().elements_of(rank);
}

/// The sends of `from` are what the others receive from it: the send list is the mirrored receive list.
constexpr bool mirrored(const transfer& plan, int rank) {
  bool all = true;
  plan.sends(rank, [&](const message& sent) {
    bool found = false;
    plan.receives(sent.to, [&](const message& got) { found = found || got == sent; });
    all = all && found;
  });
  plan.receives(rank, [&](const message& got) {
    bool found = false;
    plan.sends(got.from, [&](const message& sent) { found = found || got == sent; });
    all = all && found;
  });
  return all;
}

/// The closed form of the cost agrees with the messages, and neither moves more than must be moved.
constexpr bool costs_what_it_moves(const transfer& plan, int world) {
  cost counted;
  for (int r = 0; r < world; ++r) {
    const arrival a = arrivals(plan, r);
    counted.total += a.elements;
    counted.messages += a.messages;
    counted.busiest = tessera::detail::larger(counted.busiest, a.elements);
    counted.busiest_messages = tessera::detail::larger(counted.busiest_messages, a.messages);
    counted.lower_bound += lower_bound(plan, r);
  }
  return counted == cost_of(plan) && counted.total == counted.lower_bound;
}

/// cotangent ∘ cotangent is the identity, where all combines are sums: only they have cotangents.
constexpr bool cotangent_is_involution(const layout& x) { return cotangent(cotangent(x)) == x; }

}  // namespace tessera::engine::laws
