#pragma once

#include <tessera/operation/layer/fused_halo.hpp>
#include <tessera/operation/network/bound_plans.hpp>
#include <tessera/operation/network/bundled_traffic.hpp>
#include <tessera/operation/network/recompute.hpp>
#include <tessera/operation/program/module.hpp>

namespace tessera {

namespace engine {

/// A type's record of a layer at its layouts.
struct layer_record {
  const char* name = nullptr;
  bool only_here = false;   ///< no layer of the serial network: it takes no number in its keys
  bool moves_only = false;  ///< it takes its operand to another layout, and that is all
  layer_plan (*planned)(const void* layer, const tensor_value* const* operands) = nullptr;
  operand_elements elements;
  const void* layer = nullptr;  ///< it or its description, where one is a value; else its type says all
  bool follows_names = true;    ///< for other values of its named extents its plan is this one with them in place

  /// For the operands that it was read with.
  constexpr layer_plan plan() const { return planned(layer, nullptr); }
  /// For as many others, in the same elements.
  constexpr layer_plan plan_on(const tensor_value* const* operands) const { return planned(layer, operands); }
};

}  // namespace engine

namespace detail {

// Whether a layer's result is its operand in another layout.
template <class L>
inline constexpr bool is_move = requires { L::moves_only; };

// Whether a layer is a function of flows, and no part of a module.
template <class L>
inline constexpr bool is_function = requires { L::is_function; };

template <class L>
constexpr const void* kept_of() {
  if constexpr (Described<L>) return &description_of<L>;
  else return nullptr;
}

template <class On>
inline constexpr layer_record layer_record_of{
    On::layer::name, is_only_here(typename On::layer{}), is_move<typename On::layer>, &On::plan,
    On::elements,    kept_of<typename On::layer>(),      follows_names(On::planned)};

/// Notes what types know.
struct plans {
  using record = layer_record;
  template <class On>
  static constexpr const record* record_of() {
    return &layer_record_of<On>;
  }
};

// The tensor types stand at a place of the template and behind it.
template <int Argument, class... In>
struct inputs_check {
  static constexpr refusal value = [] {
    constexpr refusal kinds = check_kinds<kind::network, kind::tensor, In...>(Argument);
    if constexpr (kinds.ok()) return first_of(refusal{}, described<In>::verdict_source::value...);
    else return kinds;
  }();
};

// The one type of a list.
template <class List>
struct only_type_of {
  using type = void;
};
template <class T>
struct only_type_of<type_list<T>> {
  using type = T;
};
template <class List>
using only_type = typename only_type_of<List>::type;

// Why a module on tensor types, which gives Y, is no network, if it is none.
template <class Mode, int Argument, class Module, class Y, class... In>
constexpr auto network_verdict() {
  using inputs = verdict_of<inputs_check<Argument, In...>>;
  using given = typename flows_of<Y>::verdict;
  if constexpr (!inputs::ok) return inputs{};
  else if constexpr (kind_of<Module> != kind::layer && !is_callable<Module>())
    return wrong_argument<kind::network, 0, kind::module, kind_of<Module>>{};
  else if constexpr (!given::ok) return given{};
  else if constexpr (!module_call<Mode, Module, canonical_tensor<In>...>::is_constant)
    return verdicts::module_not_constant<>{};
  else return verdict_of<typename module_call<Mode, Module, canonical_tensor<In>...>::counted>{};
}

}  // namespace detail

namespace engine {

/// A network whose layers fit one another: what `network_type` names.
template <class Module, class... In>
struct network_of {
  using verdict = fits;
  using inputs = detail::type_list<In...>;
  using outputs = typename detail::module_call<detail::plans, Module, canonical_tensor<In>...>::results::types;
  using input = detail::only_type<inputs>;    ///< where there is one
  using output = detail::only_type<outputs>;  ///< where there is one

  static constexpr const program_view<layer_record>& program =
      detail::module_program<detail::plans, Module, canonical_tensor<In>...>::view;
};

}  // namespace engine

/// A network with a mistake, in few words: compilers print the name of what they refuse, and that of all layers would
/// be long.
///
/// Its first use is the one error; what it takes and gives is accepted everywhere without another.
template <class Verdict, class In>
struct refused_network {
  using verdict = Verdict;
  using inputs = detail::type_list<In>;
  using outputs = detail::type_list<detail::refused_like<In>>;
  using input = In;
  using output = detail::refused_like<In>;
  static constexpr engine::program_view<engine::layer_record> program{};
  static_assert((Verdict::template refuse<Verdict>(), true));
};

namespace detail {

// What a chain gives of a tensor type.
template <class Mode, class In, class... Layers>
struct given_by_chain {
  using type = decltype(nn::chain<Layers...>{}(typename input_flow<In, Mode>::type{}));
};

// `Accepted` where the layers fit one another, else `Refused`, neither of them instantiated.
template <class Mode, template <class, class...> class Accepted, template <class, class> class Refused, int Argument,
          class Module, class Y, class... In>
struct network_by {
  using verdict = decltype(network_verdict<Mode, Argument, Module, Y, In...>());
  template <class First = void, class...>
  struct first {
    using type = as_tensor<First>;
  };
  using type = std::conditional_t<verdict::ok, Accepted<Module, In...>, Refused<verdict, typename first<In...>::type>>;
};

}  // namespace detail

/// A module on tensor types, as far as types know it: shapes, partitions, parameters and traffic, without LibTorch.
///
/// A module is a function of flows: `struct residual { constexpr auto operator()(auto x) const { return x + (x |
/// nn::relu{}); } };`. A mistake in it is one error at its line.
template <class Module = void, class... In>
using network_type = typename detail::network_by<detail::plans, engine::network_of, refused_network, 1, Module,
                                                 decltype(std::declval<detail::module_of<Module>>()(
                                                     typename detail::input_flow<In, detail::plans>::type{}...)),
                                                 In...>::type;

/// Layers one after the other; one that refuses what comes in is named, with its place, in one error at the network's
/// first use.
template <class In = void, class... Layers>
using sequential_type =
    typename detail::network_by<detail::plans, engine::network_of, refused_network, 0, nn::chain<Layers...>,
                                typename detail::given_by_chain<detail::plans, In, Layers...>::type, In>::type;

template <class Module, class... In>
inline constexpr kind engine::kind_of<engine::network_of<Module, In...>> = kind::network;
template <class Verdict, class In>
inline constexpr kind engine::kind_of<refused_network<Verdict, In>> = kind::network;

namespace detail {

// What a layer moves, as constants of its own: a network's are many, however long it is.
template <const auto* Record, auto... Bindings>
struct constant_exchanges {
  static constexpr layer_exchanges of = exchanges_of(Record->plan(), Record->elements, extents_bound(Bindings...));
};
template <const auto* Record, auto... Bindings>
inline constexpr traffic_value layer_traffic =
    counted_traffic<constant_exchanges<Record, Bindings...>, Record->elements[0]>();

template <const auto& Program, class Indices = indices_below<Program.count>>
struct program_traffic;
template <const auto& Program, int... Node>
struct program_traffic<Program, indices<Node...>> {
  static constexpr traffic_value sum(const traffic_value (&each)[sizeof...(Node) + 1]) {
    traffic_value all;
    const auto once = [&](int i) {
      traffic_value t = each[i];
      if (t.gathered.messages + t.reduced.messages > 0 && taken_before(Program, i)) t.gathered = t.reduced = {};
      return t;
    };
    for (int i = 0; i <= Program.count; ++i) all += once(i);
    if (!check(all).ok()) return all;  // more than can be counted, which is refused
    each_tied<Program>([&](int i, const tied_traffic& t) {
      all -= once(i);
      all += t.instead_of(each[i]);
    });
    with_bundled<Program>(indices<Node...>{}, [&](const auto& members) { in_bundles(all.reduced, members); });
    return all;
  }
  static constexpr traffic_value under(const bound_extents& known) {
    return sum({bound_traffic(Program.nodes[Node].record->plan(), Program.nodes[Node].record->elements, known)
                    .again(Program.times_again(Node))...,
                {}});
  }
  template <auto... Bindings>
  static constexpr traffic_value constant() {
    return sum({layer_traffic<Program.nodes[Node].record, Bindings...>.again(Program.times_again(Node))..., {}});
  }
};

// What a network moves, whose plans are the types' or are made anew.
template <class Network>
constexpr traffic_value traffic_under(const bound_extents& known) {
  if constexpr (planned_anew<Network>) {
    const auto count = [](const layer_plan& p, const operand_elements& e) { return traffic_of(p, e); };
    node_figures<Network, traffic_value, decltype(count)> each(known, count);
    for (int i = 0; i < Network::program.count; ++i) each.of[i] = each.of[i].again(Network::program.times_again(i));
    return program_traffic<Network::program>::sum(each.of);
  } else {
    return program_traffic<Network::program>::under(known);
  }
}
template <class Network, int Node, auto... Bindings>
struct exchanges_planned_anew {
  static constexpr layer_exchanges of =
      exchanges_of(bound_plan<Network, Node, Bindings...>, Network::program.nodes[Node].record->elements, {});
  static constexpr traffic_value counted =
      counted_traffic<exchanges_planned_anew, Network::program.nodes[Node].record->elements[0]>().again(
          Network::program.times_again(Node));
};

// The same as a constant.
template <class Network, auto... Bindings>
struct constant_traffic {
  template <int... Node>
  static constexpr traffic_value counted(indices<Node...>) {
    using figures = program_traffic<Network::program>;
    if constexpr (planned_anew<Network>)
      return figures::sum({exchanges_planned_anew<Network, Node, Bindings...>::counted..., {}});
    else return figures::template constant<Bindings...>();
  }
  static constexpr traffic_value of = counted(indices_below<Network::program.count>{});
  static constexpr refusal value = check(of);
};

}  // namespace detail

/// Bytes that a network moves for given values of its dynamic extents: `traffic<net>(bind<batch>(64)).forward`.
///
/// Where these values are constants, `traffic<net, bind<batch>(64)>()`, each layer's is counted by itself, so a budget
/// may be set to a network of any length.
template <class Network, auto... Constants, class... Bindings>
constexpr engine::traffic_value traffic(const Bindings&... bindings) {
  using given = detail::argument_verdict<kind::call, 0, kind::network, Network>;
  given::template refuse<given>();
  if constexpr (given::ok) {
    if constexpr (Network::verdict::ok) {
      using known = detail::network_bindings<Network, std::remove_const_t<decltype(Constants)>..., Bindings...>;
      known::template refuse<known>();
      if constexpr (known::ok && sizeof...(Bindings) == 0) {
        return detail::counted_constant<detail::constant_traffic, Network, Constants...>();
      } else if constexpr (known::ok) {
        return detail::within_count(
            detail::traffic_under<Network>(detail::checked_extents<Network>(Constants..., bindings...)));
      }
    }
  }
  return {};
}

}  // namespace tessera
