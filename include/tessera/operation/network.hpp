#pragma once

#include <tessera/operation/layers.hpp>

#include <utility>

namespace tessera {

/// The place of a verdict in a network: layer `Index`, counted from 0.
template <int Index, class Verdict>
struct at_layer : Verdict {};

namespace detail {

/// A layer applied to a tensor type: the layer's plan as a constant and the type of its result.
template <class L, class In>
struct applied {
  static constexpr const char* name = L::name;
  static constexpr bool only_here = requires { L::only_here; };  // no layer of the serial network
  static constexpr layer_plan value = L::plan(value_of<In>);
  struct verdict_source {
    static constexpr refusal value = applied::value.why;
  };
  using verdict = verdict_of<verdict_source>;
  struct result {
    static constexpr tensor_value value{applied::value.output, value_of<In>.element};
  };
  static auto named() {
    if constexpr (verdict::ok) return std::type_identity<typename tensor_named<In, result>::type>{};
    else return std::type_identity<In>{};
  }
  using output = typename decltype(named())::type;
};

template <class... Layers>
struct layer_list {};

// The state of a left fold over layers: what comes out so far. A refused state passes every later layer on unchanged, so one
// mistake is one error.
template <class Out, int Index, class Verdict, class Done>
struct fold_state {
  using output = Out;
  using verdict = Verdict;
  using layers = Done;
};

template <class Out, int Index, class... Done, class L>
constexpr auto operator>>(fold_state<Out, Index, fits, layer_list<Done...>>, L*) {
  using on = applied<L, Out>;
  if constexpr (on::verdict::ok) return fold_state<typename on::output, Index + 1, fits, layer_list<Done..., on>>{};
  else return fold_state<Out, Index, at_layer<Index, typename on::verdict>, layer_list<Done...>>{};
}
template <class Out, int Index, class Verdict, class Done, class L>
constexpr auto operator>>(fold_state<Out, Index, Verdict, Done> refused, L*) {
  return refused;
}

template <class In>
constexpr auto first_state() {
  if constexpr (described<In>::verdict::ok) return fold_state<canonical_tensor<In>, 0, fits, layer_list<>>{};
  else return fold_state<In, 0, typename described<In>::verdict, layer_list<>>{};
}

constexpr layout bound_all(layout x) { return x; }
template <class Tag, class... Rest>
constexpr layout bound_all(const layout& x, const binding<Tag>& first, const Rest&... rest) {
  return bound_all(bound(x, first.tag, first.extent), rest...);
}

template <class On, class... Bindings>
constexpr traffic_value applied_traffic(const Bindings&... bindings) {
  layer_plan p = On::value;
  p.input = bound_all(p.input, bindings...);
  p.used = bound_all(p.used, bindings...);
  p.raw = bound_all(p.raw, bindings...);
  p.output = bound_all(p.output, bindings...);
  return traffic_of(p, On::result::value.element);
}

template <class List>
struct each_layer;
template <class... Ons>
struct each_layer<layer_list<Ons...>> {
  static constexpr int count = sizeof...(Ons);

  template <class... Bindings>
  static constexpr traffic_value traffic(const Bindings&... bindings) {
    traffic_value t;
    ((t += applied_traffic<Ons>(bindings...)), ...);
    return t;
  }
  /// Calls visit(place in the network, number in the serial network or -1, std::type_identity<applied layer>).
  template <class Visit>
  static constexpr void visit(Visit&& visit) {
    int place = 0;
    int number = 0;
    (visit(place++, Ons::only_here ? -1 : number++, std::type_identity<Ons>{}), ...);
  }
};

}  // namespace detail

/// Layers one after the other, as far as types know them: shapes, partitions, parameters and traffic, without LibTorch.
///
/// It is a left fold over the layers; a layer that refuses what comes in is named in one error.
template <TensorType In, Layer... Layers>
struct network {
  using folded = decltype((detail::first_state<In>() >> ... >> static_cast<Layers*>(nullptr)));
  using input = In;
  using output = typename folded::output;
  using layers = detail::each_layer<typename folded::layers>;
  using verdict = typename folded::verdict;
  static_assert((verdict::template refuse<verdict>(), true));
};

/// Bytes that a network moves for given values of its dynamic extents: `traffic<net>(bind<batch>(64)).forward`.
template <class Network, class... Bindings>
constexpr traffic_value traffic(const Bindings&... bindings) {
  using verdict = verdict_of<detail::all_bound<typename Network::input, Bindings...>>;
  verdict::template refuse<verdict>();
  if constexpr (verdict::ok) return Network::layers::traffic(bindings...);
  else return traffic_value{};
}

}  // namespace tessera
