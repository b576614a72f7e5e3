#pragma once

#include <tessera/meta/indices.hpp>
#include <tessera/operation/plan/exchange_traffic.hpp>
#include <tessera/operation/program/program.hpp>

namespace tessera::detail {

/// Whether a node takes parameters that an earlier one has stored on another stage.
constexpr bool takes_tied(const auto& program, int i) {
  const int owner = owner_of(program, i);
  if (owner == i) return false;
  const layer_plan has = program.nodes[owner].record->plan(), takes = program.nodes[i].record->plan();
  for (int k = 0; k < has.parameters() && k < takes.parameters(); ++k)
    if (!same(has.stored(k), takes.stored(k))) return true;
  return false;
}

/// What the parameters of such a node move: less than its plan says, which has them stored where it is, and more.
struct tied_traffic {
  traffic_value less, more;

  /// The node's traffic, of which its plan says `t`.
  constexpr traffic_value instead_of(traffic_value t) const {
    t -= less;
    t += more;
    return t;
  }
};

/// Each goes from where it is stored to where the node takes it, and its gradient comes back. A pipeline does that once
/// a batch, for all nodes that take it alike. So it counts as that of held parameters.
constexpr tied_traffic traffic_of_tied(const auto& program, int i) {
  const auto& node = *program.nodes[i].record;
  const layer_plan has = program.nodes[owner_of(program, i)].record->plan(), takes = node.plan();
  const bool taken = taken_before(program, i);
  tied_traffic t;
  for (int k = 0; k < has.parameters() && k < takes.parameters(); ++k) {
    t.less += traffic_of_parameter(takes, k, node.elements).again(program.times_again(i));
    if (taken) continue;
    const element own = takes.parameter_element(k, node.elements[0]);
    const element comes = takes.parameter_comes_as(k, node.elements[0]);
    t.more.gathered += traffic_of(has.stored(k), takes.weight(k), comes).forward;
    if (!takes.frozen(k)) t.more.reduced += traffic_of(has.stored(k), takes.weight(k), own).backward;
  }
  return t;
}

constexpr int count_tied(const auto& program) {
  int n = 0;
  for (int i = 0; i < program.count; ++i) n += takes_tied(program, i);
  return n;
}
// The n-th of such nodes.
constexpr int tied_node(const auto& program, int n) {
  int i = 0;
  while (!takes_tied(program, i) || n-- > 0) ++i;
  return i;
}

template <const auto& Program, int Node>
inline constexpr tied_traffic constant_tied_traffic = traffic_of_tied(Program, Node);

// Calls visit(node, tied_traffic) for each, which is a constant of its own.
template <const auto& Program, class Visit>
constexpr void each_tied(Visit&& visit) {
  constexpr int count = count_tied(Program);
  if constexpr (count > 0)
    [&]<int... N>(indices<N...>) {
      (visit(tied_node(Program, N), constant_tied_traffic<Program, tied_node(Program, N)>), ...);
    }(indices_below<count>{});
}

}  // namespace tessera::detail
