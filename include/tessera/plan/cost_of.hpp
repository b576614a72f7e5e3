#pragma once

#include <tessera/plan/aligned_cost.hpp>

#include <initializer_list>

namespace tessera::engine {

/// The cost for one worker: elements and messages that it receives.
struct arrival {
  index_t elements = 0;
  index_t messages = 0;
};

/// The elements that arrive at one world rank, counted over its messages.
constexpr arrival arrivals(const transfer& plan, int rank) {
  arrival n;
  plan.receives(rank, [&](const message& m) {
    if (m.from == m.to) return;
    n.elements += volume(m.where);
    ++n.messages;
  });
  return n;
}

/// The elements that a world rank needs and does not hold (of a Fold: holds and does not own).
constexpr index_t lower_bound(const transfer& plan, int rank) {
  coordinates to;
  if (!plan.target().locate(rank, to)) return 0;
  const index_t needed = plan.target().elements_of(rank);
  coordinates from;
  if (!plan.source().locate(rank, from)) return needed;
  index_t held = 1;
  for (int d = 0; d < plan.source().dims.count; ++d) {
    index_t both = 0;
    for (const interval& a : plan.target().held(d, to))
      for (const interval& b : plan.source().held(d, from)) both += overlap(a, b).size();
    held *= both;
  }
  return needed - held;
}

/// Refuses a layout of which an extent, what a window gives along it, or lengths are not known.
constexpr void throw_if_lengths_unknown(const layout& x) {
  for (int d = 0; d < x.dims.count; ++d) {
    if (x.dims[d].extent == dynamic || x.dims[d].outputs == dynamic) stop(refusal{code::extent_not_bound, d});
    if (x.dims[d].bounds == learned) stop(refusal{code::lengths_not_known, d});
  }
}

/// The cost of a plan.
///
/// On one mesh the figures are closed form: workers that nothing tells apart are counted once; between two meshes they
/// are counted worker by worker. Refuses the value when an extent or lengths are not known.
constexpr cost cost_of(const transfer& plan) {
  throw_if_lengths_unknown(plan.source().of);
  throw_if_lengths_unknown(plan.target().of);
  if (plan.aligned()) {
    const detail::aligned_cost closed{plan};
    if (!closed.overflows()) return closed.total();
  }
  cost c;
  const auto add = [&](int rank) {
    const arrival n = arrivals(plan, rank);
    c.total = detail::capped_sum(c.total, n.elements);
    c.messages += n.messages;
    c.busiest = detail::larger(c.busiest, n.elements);
    c.busiest_messages = detail::larger(c.busiest_messages, n.messages);
  };
  const auto& receivers = (plan.kind() == map::move ? plan.target() : plan.source()).of.mesh;
  for (int i = 0; i < receivers.size(); ++i) add(receivers.rank(receivers.at(i)));
  const mesh_value& readers = plan.target().of.mesh;
  for (int i = 0; i < readers.size(); ++i)
    c.lower_bound = detail::capped_sum(c.lower_bound, lower_bound(plan, readers.rank(readers.at(i))));
  return c;
}

/// Elements that cross one axis: those of messages whose ends differ in it, counted message by message.
constexpr index_t crossing(const transfer& plan, const text& axis) {
  const mesh_value& from = plan.source().of.mesh;
  const mesh_value& to = plan.target().of.mesh;
  const int a = from.find(axis);
  const int b = to.find(axis);
  index_t n = 0;
  const auto& receivers = plan.kind() == map::move ? to : from;
  for (int i = 0; i < receivers.size(); ++i)
    plan.receives(receivers.rank(receivers.at(i)), [&](const message& m) {
      coordinates x;
      coordinates y;
      const bool fold = plan.kind() == map::fold;
      if (!from.locate(fold ? m.to : m.from, x) || !to.locate(fold ? m.from : m.to, y)) return;
      if ((a < 0 ? 0 : x[a]) != (b < 0 ? 0 : y[b])) n += volume(m.where);
    });
  return n;
}

}  // namespace tessera::engine
