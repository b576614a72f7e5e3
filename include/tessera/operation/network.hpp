#pragma once

#include <tessera/operation/layer_traffic.hpp>
#include <tessera/operation/one_halo.hpp>
#include <tessera/topology/canonical_tensor.hpp>

#include <type_traits>

namespace tessera {

/// The place of a verdict in a network: layer `Index`, counted from 0, which is an `L`.
template <int Index, class L, class Verdict>
struct at_layer : Verdict {
  static constexpr bool ok = Verdict::ok;
};

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

/// A layer applied to a tensor type: its plan, which is large and a constant only where one asks for it, and the type of its result.
template <class L, class In>
struct applied {
  using layer = L;
  using input = In;
  static constexpr const char* name = L::name;
  static constexpr bool only_here = requires { L::only_here; };  // no layer of the serial network
  static constexpr layer_plan plan() { return L::plan(described<In>::value); }
  static constexpr layer_plan value = plan();
  struct result {
    static constexpr layer_result of = result_of(plan(), described<In>::value.element);
    static constexpr const refusal& why = of.why;
    static constexpr const tensor_value& value = of.value;
  };
  struct verdict_source {
    static constexpr const refusal& value = result::why;
  };
  using verdict = verdict_of<verdict_source, L, In>;

  // What stays as it was keeps its type, which is canonical already; what is cut as it was keeps its partition.
  static auto named() {
    using mesh = typename mesh_after<L, In>::type;
    constexpr bool stays = std::is_same_v<mesh, typename described<In>::mesh_type> && verdict::ok;
    if constexpr (stays && result::value == described<In>::value) return std::type_identity<In>{};
    else if constexpr (stays && cut_alike(result::value.layout, described<In>::value.layout)) return resized<In, result>{};
    else return named_result<In, result, mesh>{};
  }
  using output = typename decltype(named())::type;

  template <class... Bindings>
  static constexpr traffic_value traffic(const Bindings&... bindings) {
    return traffic_of(bound_all(value, bindings...), described<In>::value.element);
  }
  template <auto... Bindings>
  struct exchanges {
    static constexpr layer_exchanges of = exchanges_of(bound_all(plan(), Bindings...), described<In>::value.element);
  };
  template <auto... Bindings>
  static constexpr traffic_value constant_traffic() {
    if constexpr (result::of.moves) return counted_traffic<exchanges<Bindings...>, described<In>::value.element>();
    else return {};
  }
};

/// What an applied layer moves, as a constant of its own: a network's is a sum of many, however long it is.
template <class On, auto... Bindings>
inline constexpr traffic_value layer_traffic = On::template constant_traffic<Bindings...>();

template <class... Layers>
struct layer_list {};

template <class A, class B>
struct both_lists;
template <class... A, class... B>
struct both_lists<layer_list<A...>, layer_list<B...>> {
  using type = layer_list<A..., B...>;
};

// The state of a chain of layers: what comes out so far. A refused state passes every later layer on unchanged, so one
// mistake is one error.
template <class Out, int Index, class Verdict, class Done>
struct chain_state {
  using output = Out;
  using verdict = Verdict;
  using layers = Done;
};

template <class Out, int Index, class... Done, class L>
constexpr auto operator>>(chain_state<Out, Index, fits, layer_list<Done...>>, L*) {
  if constexpr (Layer<L>) {
    using on = applied<L, Out>;
    if constexpr (on::verdict::ok) return chain_state<typename on::output, Index + 1, fits, layer_list<Done..., on>>{};
    else return chain_state<Out, Index, at_layer<Index, L, typename on::verdict>, layer_list<Done...>>{};
  } else {
    return chain_state<Out, Index, at_layer<Index, L, argument_verdict<kind::network, Index + 1, kind::layer, L>>, layer_list<Done...>>{};
  }
}
template <class Out, int Index, class Verdict, class Done, class L>
constexpr auto operator>>(chain_state<Out, Index, Verdict, Done> refused, L*) {
  return refused;
}

// Layers that share a halo: the exchange, then the layers.
template <class Out, int Index, class... Done, class... Layers>
constexpr auto operator>>(chain_state<Out, Index, fits, layer_list<Done...>> state, nn::one_halo<Layers...>*) {
  const auto exchanged = state >> static_cast<shared_halo<Layers...>*>(nullptr);
  return (exchanged >> ... >> static_cast<Layers*>(nullptr));
}

template <class In>
constexpr auto first_state() {
  if constexpr (!TensorType<In>) return chain_state<In, 0, argument_verdict<kind::network, 0, kind::tensor, In>, layer_list<>>{};
  else if constexpr (described<In>::verdict::ok) return chain_state<canonical_tensor<In>, 0, fits, layer_list<>>{};
  else return chain_state<In, 0, typename described<In>::verdict, layer_list<>>{};
}

// The same state with other layers done.
template <class Done, class Out, int Index, class Verdict, class Last>
chain_state<Out, Index, Verdict, Done> with_layers(chain_state<Out, Index, Verdict, Last>);

// Eight layers a level: a fold expression, like an instantiation, is nested no deeper than compilers allow, and a state names few
// layers, however many are done before.
template <class Before, class State, class... Layers>
struct chain_from {
  using last = decltype((State{} >> ... >> static_cast<Layers*>(nullptr)));
  using done = typename both_lists<Before, typename last::layers>::type;
  using type = decltype(with_layers<done>(last{}));
};
template <class Before, class State, class A, class B, class C, class D, class E, class F, class G, class H, class Next, class... Rest>
struct chain_from<Before, State, A, B, C, D, E, F, G, H, Next, Rest...> {
  using eight = chain_from<Before, State, A, B, C, D, E, F, G, H>;
  using type = typename chain_from<typename eight::done, decltype(with_layers<layer_list<>>(typename eight::last{})), Next, Rest...>::type;
};

template <class In, class... Layers>
struct chain : chain_from<layer_list<>, decltype(first_state<In>()), Layers...> {};

template <class List>
struct each_layer;
template <class... Ons>
struct each_layer<layer_list<Ons...>> {
  static constexpr int count = sizeof...(Ons);

  /// The plan of the layer at a place.
  static constexpr layer_plan plan(int place) {
    constexpr layer_plan (*plans[])(){&Ons::plan..., nullptr};
    return plans[place]();
  }

  /// What all layers move, for extents that are known while the program runs, and for constants.
  template <class... Bindings>
  static constexpr traffic_value traffic(const Bindings&... bindings) {
    return sum({Ons::traffic(bindings...)..., {}});
  }
  template <auto... Bindings>
  static constexpr traffic_value constant_traffic() {
    return sum({layer_traffic<Ons, Bindings...>..., {}});
  }

  /// Calls visit(place in the network, number in the serial network or -1, std::type_identity<applied layer>).
  template <class Visit>
  static constexpr void visit(Visit&& visit) {
    int place = 0;
    int number = 0;
    const int visited[]{(visit(place++, Ons::only_here ? -1 : number++, std::type_identity<Ons>{}), 0)..., 0};
    static_cast<void>(visited);
  }

 private:
  static constexpr traffic_value sum(const traffic_value (&each)[count + 1]) {
    traffic_value all;
    for (const traffic_value& t : each) all += t;
    return all;
  }
};

}  // namespace detail

/// A network whose layers fit one another: what `network` names.
template <class In, class... Layers>
struct network_of {
  using chained = typename detail::chain<In, Layers...>::type;
  using input = In;
  using output = typename chained::output;
  using layers = detail::each_layer<typename chained::layers>;
  using verdict = typename chained::verdict;
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
  using verdict = typename chain<In, Layers...>::type::verdict;
  using input = as_tensor<In>;
  using type = std::conditional_t<verdict::ok, Accepted<In, Layers...>, Refused<verdict, input>>;
};

}  // namespace detail

/// Layers one after the other, as far as types know them: shapes, partitions, parameters and traffic, without LibTorch.
///
/// Each takes what the one before gives; one that refuses it is named in one error at the network's first use.
/// `In` is a tensor type, each of `Layers` a Layer.
template <class In = void, class... Layers>
using network = typename detail::network_named<network_of, refused_network, In, Layers...>::type;

template <class In, class... Layers>
inline constexpr kind kind_of<network_of<In, Layers...>> = kind::network;
template <class Verdict, class In>
inline constexpr kind kind_of<refused_network<Verdict, In>> = kind::network;

namespace detail {

// The bindings with which a network's traffic is asked.
template <class Network, class... Bindings>
using traffic_bindings = verdict_of<bindings_check<typename Network::input, typename Network::output, Bindings...>>;

// What a network moves, as a constant.
template <class Network, auto... Bindings>
struct constant_traffic {
  static constexpr traffic_value of = Network::layers::template constant_traffic<Bindings...>();
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
      using known = detail::traffic_bindings<Network, Bindings...>;
      known::template refuse<known>();
      if constexpr (known::ok && sizeof...(Bindings) == 0) {
        using counted = verdict_of<detail::constant_traffic<Network>>;
        counted::template refuse<counted>();
        return detail::constant_traffic<Network>::of;
      } else if constexpr (known::ok) {
        const traffic_value t = Network::layers::traffic(bindings...);
        if (!check(t).ok()) stop(check(t));  // [tessera.cost.overflow] more elements or bytes move than can be counted
        return t;
      }
    }
  }
  return {};
}

/// The same where these values are constants: `traffic<net, bind<batch>(64)>()`. Each layer's is counted by itself, so a budget
/// may be set to a network of any length.
template <class Network, auto First, auto... Bindings>
constexpr traffic_value traffic() {
  using given = detail::argument_verdict<kind::call, 0, kind::network, Network>;
  given::template refuse<given>();
  if constexpr (given::ok) {
    if constexpr (Network::verdict::ok) {
      using known = detail::traffic_bindings<Network, std::remove_const_t<decltype(First)>, std::remove_const_t<decltype(Bindings)>...>;
      known::template refuse<known>();
      if constexpr (known::ok) {
        using counted = verdict_of<detail::constant_traffic<Network, First, Bindings...>>;
        counted::template refuse<counted>();
        return detail::constant_traffic<Network, First, Bindings...>::of;
      }
    }
  }
  return {};
}

}  // namespace tessera
