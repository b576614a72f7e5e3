#pragma once

#include <tessera/operation/network/network.hpp>
#include <tessera/operation/plan/layer_arithmetic.hpp>

namespace tessera {

namespace detail {

constexpr arithmetic_value bound_arithmetic(layer_plan p, const operand_elements& e, const bound_extents& known) {
  bind_all(p, known);
  return arithmetic_of(p, e);
}

// What a layer computes, as a constant of its own.
template <const auto* Record, auto... Bindings>
inline constexpr arithmetic_value layer_arithmetic =
    bound_arithmetic(Record->plan(), Record->elements, extents_bound(Bindings...));

template <const auto& Program, class Indices = indices_below<Program.count>>
struct program_arithmetic;
template <const auto& Program, int... Node>
struct program_arithmetic<Program, indices<Node...>> {
  static constexpr arithmetic_value under(const bound_extents& known) {
    arithmetic_value all;
    for (int i = 0; i < Program.count; ++i)
      all += bound_arithmetic(Program.nodes[i].record->plan(), Program.nodes[i].record->elements, known)
                 .again(Program.times_again(i));
    return all;
  }
  template <auto... Bindings>
  static constexpr arithmetic_value constant() {
    const arithmetic_value each[]{
        layer_arithmetic<Program.nodes[Node].record, Bindings...>.again(Program.times_again(Node))..., {}};
    arithmetic_value all;
    for (const arithmetic_value& one : each) all += one;
    return all;
  }
};

// What a network computes, whose plans are the types' or are made anew.
template <class Network>
constexpr arithmetic_value arithmetic_under(const bound_extents& known) {
  if constexpr (planned_anew<Network>) {
    arithmetic_value all;
    each_bound_plan<Network>(known, [&](int i, const layer_plan& p) {
      all += arithmetic_of(p, Network::program.nodes[i].record->elements).again(Network::program.times_again(i));
    });
    return all;
  } else {
    return program_arithmetic<Network::program>::under(known);
  }
}
template <class Network, int Node, auto... Bindings>
inline constexpr arithmetic_value arithmetic_planned_anew =
    arithmetic_of(bound_plan<Network, Node, Bindings...>, Network::program.nodes[Node].record->elements)
        .again(Network::program.times_again(Node));

template <class Network, auto... Bindings>
struct constant_multiply_adds {
  template <int... Node>
  static constexpr arithmetic_value counted(indices<Node...>) {
    if constexpr (planned_anew<Network>) {
      arithmetic_value all;
      for (const arithmetic_value& one : {arithmetic_value(), arithmetic_planned_anew<Network, Node, Bindings...>...})
        all += one;
      return all;
    } else {
      return program_arithmetic<Network::program>::template constant<Bindings...>();
    }
  }
  static constexpr arithmetic_value of = counted(indices_below<Network::program.count>{});
  static constexpr refusal value = check(of);
};

}  // namespace detail

namespace engine {

/// The arithmetic of a program that is put together while it runs, where extents that only data give are `rows`.
template <class Record>
constexpr arithmetic_value arithmetic_of(const program_view<Record>& program, index_t rows) {
  arithmetic_value all;
  for (int i = 0; i < program.count; ++i) {
    layer_plan p = program.nodes[i].record->plan();
    bind_rows(p, rows);
    all += arithmetic_of(p, program.nodes[i].record->elements).again(program.times_again(i));
  }
  return all;
}

}  // namespace engine

// As `traffic` asks, line by line.

/// The arithmetic of a network with given dynamic extents, in multiply-adds: `multiply_adds<net>(
/// bind<batch>(64)).forward.total`, of all workers, and `.busiest_worker`.
///
/// Products are counted: contractions, attention by the keys that queries see, transforms. Backward makes twice as
/// many, of attention's scores three times, and what is recomputed once more. One is two floating-point operations.
/// The extents may be constants: `multiply_adds<net, bind<batch>(64)>()`.
template <class Network, auto... Constants, class... Bindings>
constexpr engine::arithmetic_value multiply_adds(const Bindings&... bindings) {
  using given = detail::argument_verdict<kind::call, 0, kind::network, Network>;
  given::template refuse<given>();
  if constexpr (given::ok) {
    if constexpr (Network::verdict::ok) {
      using known = detail::network_bindings<Network, std::remove_const_t<decltype(Constants)>..., Bindings...>;
      known::template refuse<known>();
      if constexpr (known::ok && sizeof...(Bindings) == 0) {
        return detail::counted_constant<detail::constant_multiply_adds, Network, Constants...>();
      } else if constexpr (known::ok) {
        return detail::within_count(
            detail::arithmetic_under<Network>(detail::checked_extents<Network>(Constants..., bindings...)));
      }
    }
  }
  return {};
}

}  // namespace tessera
