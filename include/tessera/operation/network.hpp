#pragma once

#include <tessera/operation/one_halo.hpp>
#include <tessera/topology/canonical_tensor.hpp>

#include <utility>

namespace tessera {

/// The place of a verdict in a network: layer `Index`, counted from 0.
template <int Index, class Verdict>
struct at_layer : Verdict {};

namespace detail {

// The mesh type of a layer's result: the one it names, else its input's.
template <class L, class In>
struct mesh_after {
  using type = typename described<In>::mesh_type;
};
template <class L, class In>
  requires requires { typename L::mesh_type; }
struct mesh_after<L, In> {
  using type = typename L::mesh_type;
};

/// A layer applied to a tensor type: the layer's plan as a constant and the type of its result.
template <class L, class In>
struct applied {
  using layer = L;
  static constexpr const char* name = L::name;
  static constexpr bool only_here = requires { L::only_here; };  // no layer of the serial network
  static constexpr layer_plan value = L::plan(described<In>::value);
  struct result {
    static constexpr const refusal& why = applied::value.why;
    static constexpr tensor_value value{applied::value.output, described<In>::value.element};
  };
  using typed = planned<In, result, typename mesh_after<L, In>::type>;
  using verdict = typename typed::verdict;
  using output = typename typed::type;
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
  if constexpr (Layer<L>) {
    using on = applied<L, Out>;
    if constexpr (on::verdict::ok) return fold_state<typename on::output, Index + 1, fits, layer_list<Done..., on>>{};
    else return fold_state<Out, Index, at_layer<Index, typename on::verdict>, layer_list<Done...>>{};
  } else {
    return fold_state<Out, Index, at_layer<Index, argument_verdict<kind::network, Index + 1, kind::layer, L>>, layer_list<Done...>>{};
  }
}
template <class Out, int Index, class Verdict, class Done, class L>
constexpr auto operator>>(fold_state<Out, Index, Verdict, Done> refused, L*) {
  return refused;
}

// Layers that share a halo: the exchange, then the layers.
template <class Out, int Index, class... Done, class... Layers>
constexpr auto operator>>(fold_state<Out, Index, fits, layer_list<Done...>> state, nn::one_halo<Layers...>*) {
  const auto exchanged = state >> static_cast<shared_halo<Layers...>*>(nullptr);
  return (exchanged >> ... >> static_cast<Layers*>(nullptr));
}

template <class In>
constexpr auto first_state() {
  if constexpr (!TensorType<In>) return fold_state<In, 0, argument_verdict<kind::network, 0, kind::tensor, In>, layer_list<>>{};
  else if constexpr (described<In>::verdict::ok) return fold_state<canonical_tensor<In>, 0, fits, layer_list<>>{};
  else return fold_state<In, 0, typename described<In>::verdict, layer_list<>>{};
}

template <class In, class... Layers>
struct fold {
  using type = decltype((first_state<In>() >> ... >> static_cast<Layers*>(nullptr)));
};

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
  static constexpr const layer_plan* plans[count + 1]{&Ons::value..., nullptr};

  /// The plan of the layer at a place.
  template <int Place>
  static constexpr const layer_plan& plan_at = *plans[Place];

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

/// A network whose layers fit one another: what `network` names.
template <class In, class... Layers>
struct network_of {
  using folded = typename detail::fold<In, Layers...>::type;
  using input = In;
  using output = typename folded::output;
  using layers = detail::each_layer<typename folded::layers>;
  using verdict = typename folded::verdict;
};

/// A network with a mistake, in few words: compilers print the name of what they refuse, and that of all layers would be long.
///
/// Its first use is the one error; what it takes and gives is accepted everywhere without another.
template <class Verdict, class In>
struct refused_network {
  using input = In;
  using output = detail::refused_like<In>;
  using layers = detail::each_layer<detail::layer_list<>>;
  using verdict = Verdict;
  static_assert((Verdict::template refuse<Verdict>(), true));
};

namespace detail {

// `Accepted` where the layers fit one another, else `Refused`, neither of them instantiated.
template <template <class, class...> class Accepted, template <class, class> class Refused, class In, class... Layers>
struct network_named {
  using verdict = typename fold<In, Layers...>::type::verdict;
  using input = as_tensor<In>;
  using type = std::conditional_t<verdict::ok, Accepted<In, Layers...>, Refused<verdict, input>>;
};

}  // namespace detail

/// Layers one after the other, as far as types know them: shapes, partitions, parameters and traffic, without LibTorch.
///
/// It is a left fold over the layers; a layer that refuses what comes in is named in one error at the network's first use.
/// `In` is a tensor type, each of `Layers` a Layer.
template <class In = void, class... Layers>
using network = typename detail::network_named<network_of, refused_network, In, Layers...>::type;

template <class In, class... Layers>
inline constexpr kind kind_of<network_of<In, Layers...>> = kind::network;
template <class Verdict, class In>
inline constexpr kind kind_of<refused_network<Verdict, In>> = kind::network;

namespace detail {

// What a network moves, where all extents are static.
template <class Network>
struct static_traffic {
  static constexpr traffic_value of = Network::layers::traffic();
  static constexpr refusal value = check(of);
};

}  // namespace detail

/// Bytes that a network moves for given values of its dynamic extents: `traffic<net>(bind<batch>(64)).forward`.
template <class Network, class... Bindings>
constexpr traffic_value traffic(const Bindings&... bindings) {
  using given = detail::argument_verdict<kind::call, 0, kind::network, Network>;
  given::template refuse<given>();
  if constexpr (given::ok) {
    if constexpr (Network::verdict::ok) {
      using known = verdict_of<detail::bindings_check<typename Network::input, typename Network::output, Bindings...>>;
      known::template refuse<known>();
      if constexpr (known::ok && sizeof...(Bindings) == 0) {
        using counted = verdict_of<detail::static_traffic<Network>>;
        counted::template refuse<counted>();
        return detail::static_traffic<Network>::of;
      } else if constexpr (known::ok) {
        const traffic_value t = Network::layers::traffic(bindings...);
        if (!check(t).ok()) stop(check(t));  // [tessera.cost.overflow] more elements or bytes move than can be counted
        return t;
      }
    }
  }
  return {};
}

}  // namespace tessera
