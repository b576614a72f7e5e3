#pragma once

#include <tessera/meta/indices.hpp>
#include <tessera/operation/plan/layer_traffic.hpp>
#include <tessera/operation/plan/open_dimensions.hpp>
#include <tessera/operation/program/program.hpp>

// The plans of a network whose dynamic extents are given. They are the types' with these in place, where each has a
// name and no window nor list of lengths is along it. Else they are made anew from the inputs on, as run time makes
// them.

namespace tessera::detail {

constexpr bool follow_names(const auto& program) {
  for (int i = 0; i < program.count; ++i)
    if (!program.nodes[i].record->follows_names) return false;
  return true;
}
template <class Network>
inline constexpr bool planned_anew = !follow_names(Network::program);

// The values of bindings, by their names.
template <class... Bindings>
constexpr bound_extents extents_bound(const Bindings&... bindings) {
  bound_extents all;
  (all.push({Bindings::tag, bindings.extent}), ...);
  return all;
}

// A plan for operands that lie so, in the elements that its types have; it leaves no extent open.
constexpr layer_plan plan_on(const auto& record, const layout* const* given) {
  const layer_plan typed = record.plan();
  tensor_value x[operand_elements::capacity];
  const tensor_value* operands[operand_elements::capacity]{};
  for (int k = 0; k < record.elements.count; ++k) {
    x[k] = {with_open(*given[k], open_dimensions(typed.given(k))), record.elements[k]};
    operands[k] = &x[k];
  }
  layer_plan p = record.plan_on(operands);
  if (p.why.ok())
    p.each_layout([&](const layout& y) {
      for (int d = 0; d < y.dims.count; ++d)
        if (y.dims[d].extent == dynamic) p.why = refusal{code::extent_not_bound, d};
    });
  return p;
}

template <class... In>
constexpr layout bound_input(type_list<In...>, int input, const bound_extents& known) {
  const layout* const all[]{&described<In>::value.layout..., nullptr};
  layout x = *all[input];
  for (const bound_extent& k : known) bind_extent(x, k.tag, k.extent);
  return x;
}

/// Refuses inputs that contradict their extents.
template <class Network>
constexpr refusal check_inputs(const bound_extents& known) {
  for (int i = 0; i < Network::program.inputs; ++i)
    if (const refusal why = check(bound_input(typename Network::inputs{}, i, known)); !why.ok()) return why;
  return {};
}

/// Calls visit(node, plan) for each node of a network that is planned anew.
template <class Network, class Visit>
constexpr void each_bound_plan(const bound_extents& known, Visit&& visit) {
  constexpr const auto& program = Network::program;
  constexpr int count = values_of(program);
  layout values[count];
  int first[program.count + 1]{program.inputs};
  for (int i = 0; i < program.inputs; ++i) values[i] = bound_input(typename Network::inputs{}, i, known);
  for (int i = 0; i < program.count; ++i) {
    const auto& node = program.nodes[i];
    const layout* operands[operand_elements::capacity]{};
    for (int k = 0; k < node.operands; ++k) {
      const program_value& v = program.operand(node, k);
      operands[k] = &values[v.node < 0 ? v.index : first[v.node] + v.index];
    }
    const layer_plan p = plan_on(*node.record, operands);
    if (!p.why.ok()) stop(p.why);
    for (int r = 0; r < node.results; ++r) values[first[i] + r] = p.output(r);
    first[i + 1] = first[i] + node.results;
    visit(i, p);
  }
}

/// The same of every network.
template <class Network, class Visit>
constexpr void each_plan(const bound_extents& known, Visit&& visit) {
  if constexpr (planned_anew<Network>) {
    each_bound_plan<Network>(known, visit);
  } else {
    for (int i = 0; i < Network::program.count; ++i) {
      layer_plan p = Network::program.nodes[i].record->plan();
      bind_all(p, known);
      visit(i, p);
    }
  }
}

template <class Network, int Node, auto... Bindings>
struct bound_node;
template <class Network, int Node, auto... Bindings>
inline constexpr layer_plan bound_plan = bound_node<Network, Node, Bindings...>::planned();
template <class Network, int Node, auto... Bindings>
inline constexpr bool is_bound = bound_plan<Network, Node, Bindings...>.why.ok();
template <class Network, auto... Bindings>
inline constexpr bool is_bound<Network, -1, Bindings...> = true;

// A value of such a network as a constant of its own.
template <class Network, int Node, int Index, auto... Bindings>
inline constexpr const layout& bound_layout = bound_plan<Network, Node, Bindings...>.output(Index);
template <class Network, int Index, auto... Bindings>
inline constexpr layout bound_layout<Network, -1, Index, Bindings...> =
    bound_input(typename Network::inputs{}, Index, extents_bound(Bindings...));

// The plan of a node of such a network as a constant of its own: a network's are many, however long it is.
template <class Network, int Node, auto... Bindings>
struct bound_node {
  static constexpr const auto& program = Network::program;
  template <int K>
  static constexpr program_value operand = program.operand(program.nodes[Node], K);

  template <int... K>
  static constexpr layer_plan planned(indices<K...>) {
    if constexpr ((is_bound<Network, operand<K>.node, Bindings...> && ...)) {
      const layout* const given[]{&bound_layout<Network, operand<K>.node, operand<K>.index, Bindings...>..., nullptr};
      return plan_on(*program.nodes[Node].record, given);
    } else {
      return refused_layer(refusal{code::refused_before});
    }
  }
  static constexpr layer_plan planned() { return planned(indices_below<program.nodes[Node].operands>{}); }
};

// Why the figures of a network cannot be counted with these extents.
template <class Network, auto... Bindings>
struct bound_check {
  template <int... Node>
  static constexpr refusal of_nodes(indices<Node...>) {
    for (const refusal& why : {refusal{}, bound_plan<Network, Node, Bindings...>.why...})
      if (!why.ok()) return why;
    return {};
  }
  static constexpr refusal value = [] {
    constexpr refusal inputs = check_inputs<Network>(extents_bound(Bindings...));
    if constexpr (inputs.ok() && planned_anew<Network>) return of_nodes(indices_below<Network::program.count>{});
    else return inputs;
  }();
};

/// A figure of each node of a network, for extents that run time gives: `count(plan, elements)` says it of a plan.
template <class Network, class Figure, class Count>
struct node_figures {
  Figure of[Network::program.count + 1]{};

  constexpr node_figures(const bound_extents& known, const Count& count) {
    each_bound_plan<Network>(
        known, [&](int i, const layer_plan& p) { of[i] = count(p, Network::program.nodes[i].record->elements); });
  }
};

template <class List, class... Bindings>
struct list_bindings_check;
template <class... T, class... Bindings>
struct list_bindings_check<type_list<T...>, Bindings...> {
  static constexpr refusal value = first_of(bindings_check<T, T, Bindings...>::value...);
};

// The bindings with which a network's figures are asked. Extents of outputs that have no name follow from those of
// inputs.
template <class Network, class... Bindings>
struct network_bindings_check {
  static constexpr refusal value = [] {
    constexpr refusal inputs = list_bindings_check<typename Network::inputs, Bindings...>::value;
    if constexpr (planned_anew<Network>) return inputs;
    else return first_of(inputs, list_bindings_check<typename Network::outputs, Bindings...>::value);
  }();
};
template <class Network, class... Bindings>
using network_bindings = verdict_of<network_bindings_check<Network, Bindings...>>;

// Extents that run time gives, which the inputs do not contradict.
template <class Network, class... Bindings>
constexpr bound_extents checked_extents(const Bindings&... bindings) {
  const bound_extents known = extents_bound(bindings...);
  if (const refusal why = check_inputs<Network>(known); !why.ok()) stop(why);
  return known;
}

// A figure of a network as a constant, of extents that are constants: refused where it cannot be planned, or counted.
template <template <class, auto...> class Figure, class Network, auto... Bindings>
constexpr auto counted_constant() {
  using bound = verdict_of<bound_check<Network, Bindings...>>;
  bound::template refuse<bound>();
  if constexpr (bound::ok) {
    using counted = verdict_of<Figure<Network, Bindings...>>;
    counted::template refuse<counted>();
    return Figure<Network, Bindings...>::of;
  } else {
    return std::remove_const_t<decltype(Figure<Network, Bindings...>::of)>{};
  }
}

}  // namespace tessera::detail
