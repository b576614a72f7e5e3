#pragma once

#include <tessera/operation/program/flows.hpp>
#include <tessera/operation/program/layer_application.hpp>
#include <tessera/operation/program/program.hpp>

#include <utility>

namespace tessera {

namespace detail {

template <class T, int Dim>
struct extent_check {
  static constexpr int dims = described<T>::value.layout.dims.count;
  static constexpr bool refused = !described<T>::verdict_source::value.ok();
  static constexpr refusal value =
      refused || (Dim >= 0 && Dim < dims) ? refusal{} : refusal{code::dimension_not_there, Dim, dims};
};

}  // namespace detail

/// A tensor that has no elements yet: what a module is called with to learn its program.
///
/// `T` is its tensor type, canonical. `Mode`, its trace mode, says what is noted of each layer: what types know, what
/// runs, what it moves.
template <class T, class Mode, class Verdict = fits>
struct flow {
  using type = T;
  using trace_mode = Mode;
  using verdict = Verdict;

  /// How it is cut: `ts::to<typename decltype(x)::partition>(y)` leads y to where x lies.
  using partition = typename detail::described<T>::partition_type;

  detail::recorder<typename Mode::record>* in = nullptr;
  engine::program_value from;

  /// The extent of a dimension of the whole tensor, a constant; `dynamic` where only run time knows it, and 1 of what
  /// was refused.
  template <int Dim>
  static constexpr index_t extent() {
    using checked = engine::verdict_of<detail::extent_check<T, Dim>>;
    checked::template refuse<checked>();
    if constexpr (!checked::ok || detail::extent_check<T, Dim>::refused) return 1;
    else return detail::described<T>::value.layout.dims[Dim].extent;
  }

  /// Refuses another tensor's flow.
  template <class Other, class Told>
  constexpr auto& operator=(const flow<Other, Mode, Told>&) {
    using refused = std::conditional_t<Told::ok, verdicts::flow_of_another_type<>, fits>;
    static_assert((refused::template refuse<refused>(), true));
    return *this;
  }
};
template <class T, class Mode, class Verdict>
inline constexpr kind engine::kind_of<flow<T, Mode, Verdict>> = kind::flow;

/// The same in a program that is put together while it runs: what tensor it stands for, only its program knows.
template <class Mode>
struct flow<tensor<dyn>, Mode, fits> {
  using type = tensor<dyn>;
  using trace_mode = Mode;
  using verdict = fits;

  typename Mode::program_type* in = nullptr;
  engine::program_value from;

  /// How it is cut.
  const tessera::layout& layout() const { return in->value_of(*this).layout; }
  /// The extent of a dimension of the whole tensor.
  template <int Dim>
  index_t extent() const {
    const tessera::layout& x = layout();
    if (Dim < 0 || Dim >= x.dims.count) in->refuse(refusal{code::dimension_not_there, Dim, x.dims.count}, "extent");
    return x.dims[Dim].extent;
  }
};

namespace engine {

/// The type of a flow, whatever is noted.
template <class F>
concept FlowType = kind_of<F> == kind::flow;

/// The type of a flow whose tensor is a value.
template <class F>
concept DynamicFlow = FlowType<F> && kind_of<typename F::type> == kind::dynamic_tensor;

}  // namespace engine

namespace detail {

template <class Mode, class Like, class Verdict>
constexpr auto refused_flow() {
  return flow<refused_like<Like>, Mode, Verdict>{};
}

// The flows of a node's results.
template <class On, class Mode, int... Index>
constexpr auto results_of(recorder<typename Mode::record>* in, int node, indices<Index...>) {
  if constexpr (sizeof...(Index) == 1) return flow<typename On::template result<0>::type, Mode>{in, {node, 0}};
  else return flows(flow<typename On::template result<Index>::type, Mode>{in, {node, Index}}...);
}

// The layer that a mode notes for one: another than it only if the mode says so.
template <class Mode, class L>
struct layer_in_mode {
  using type = L;
};
template <class Mode, class L>
  requires requires { typename Mode::template in_place_of<L>; }
struct layer_in_mode<Mode, L> {
  using type = typename layer_in_mode<typename Mode::on, typename Mode::template in_place_of<L>>::type;
};

// The same flows in another mode that notes the same.
template <class Mode, class T, class Before, class Verdict>
constexpr flow<T, Mode, Verdict> in_mode(const flow<T, Before, Verdict>& x) {
  return {x.in, x.from};
}
template <class Mode, class... F>
constexpr auto in_mode(const flows<F...>& all) {
  return [&]<int... Index>(indices<Index...>) {
    return flows(in_mode<Mode>(get<Index>(all))...);
  }(indices_below<sizeof...(F)>{});
}

// Whether a mode reads another part in place of one: `part`, which the mode `outside` notes. Of other modes than those
// that replace parts nothing is instantiated.
template <class Mode>
inline constexpr bool replaces_parts = false;
template <class Mode, class Part>
struct replaced_in {
  static constexpr bool value = false;
};
template <class Mode, class Part>
concept Replaced = replaces_parts<Mode> && replaced_in<Mode, Part>::value;

// A layer on flows, without a word where it is refused. One without a number has the keys of its scope.
template <class L, class Mode, class First, class... Rest>
constexpr auto flowed_through(bool numbered, const flow<First, Mode>& first, const flow<Rest, Mode>&... rest) {
  using on = applied<typename layer_in_mode<Mode, L>::type, First, Rest...>;
  if constexpr (on::verdict::ok) {
    constexpr int results = on::planned.outputs();
    const int node = first.in->add(Mode::template record_of<on>(), {first.from, rest.from...}, results, numbered);
    return results_of<on, Mode>(first.in, node, indices_below<results>{});
  } else {
    return refused_flow<Mode, First, typename on::verdict>();
  }
}

// Whether a type has a call operator, which is not looked into: a mistake in it is told where it is called.
struct call_operator {
  void operator()() const;
};
template <class T>
struct with_call_operator : T, call_operator {};
template <class T>
constexpr bool is_callable() {
  if constexpr (kind_of<T> != kind::something_else) return false;
  else if constexpr (!std::is_class_v<T> || std::is_final_v<T>) return false;
  else return !requires { &with_call_operator<T>::operator(); };
}

/// A part around another one: `around(call, x…)` notes in its own way what `call` notes of that. It has no place in the
/// keys of parameters, so these, initial values and files are those of the part inside, wherever that is named.
template <class Part>
concept Wrapper = requires { typename Part::wraps; };

// Whether a part is all that its type says.
template <class Part>
constexpr bool known_by_type() {
  if constexpr (kind_of<Part> == kind::layer || is_callable<Part>()) return std::is_empty_v<Part>;
  else return true;
}

// A module on flows, in a scope of its own, unless it sees to it itself.
template <class Module, class First, class... Rest>
constexpr auto in_scope(const Module& module, const First& first, const Rest&... rest) {
  if constexpr (requires { Module::sees_to_its_scope; }) {
    return module(first, rest...);
  } else {
    const auto back = first.in->enter();
    const auto y = module(first, rest...);
    first.in->leave(back);
    return y;
  }
}

// Whether the serial network has no such layer; some layers know it by their options.
template <class L>
constexpr bool is_only_here([[maybe_unused]] const L& layer) {
  if constexpr (requires { layer.only_here(); }) return layer.only_here();
  else return requires { L::only_here; };
}

// A part that is a value, in its place in a program that is put together while it runs.
template <class Part, DynamicFlow First, DynamicFlow... Rest>
auto added(const Part& part, const First& first, const Rest&... rest) {
  if constexpr (kind_of<Part> == kind::layer) {
    return first.in->add(part, !is_only_here(part), first, rest...);
  } else if constexpr (Wrapper<Part>) {
    const auto inside = [&](const auto&... x) { return added(part.inside(), x...); };
    return first.in->whole([&] { return part.around(inside, first, rest...); });
  } else {
    using verdict =
        std::conditional_t<is_callable<Part>(), fits, wrong_argument<kind::flow, 1, kind::layer, kind_of<Part>>>;
    verdict::template refuse<verdict>();
    if constexpr (verdict::ok) return first.in->whole([&] { return in_scope(part, first, rest...); });
    else return first;
  }
}

// The same for parts that are types.
template <class Part>
struct passing_on {
  template <class... F>
  constexpr auto operator()(const F&... x) const;
};

// A part in its place, without a word where it is refused.
template <class Part, class First, class... Rest>
constexpr auto passed_on(const First& first, const Rest&... rest) {
  if constexpr (DynamicFlow<First>) {
    return added(Part{}, first, rest...);
  } else if constexpr (!(First::verdict::ok && ... && Rest::verdict::ok)) {
    return refused_flow<typename First::trace_mode, typename First::type, refused_before>();
  } else if constexpr (!known_by_type<Part>()) {
    return refused_flow<typename First::trace_mode, typename First::type, verdicts::part_holds_values<>>();
  } else if constexpr (Replaced<typename First::trace_mode, Part>) {
    using instead = replaced_in<typename First::trace_mode, Part>;
    return in_mode<typename First::trace_mode>(passed_on<typename instead::part>(
        in_mode<typename instead::outside>(first), in_mode<typename instead::outside>(rest)...));
  } else if constexpr (kind_of<Part> == kind::layer) {
    return flowed_through<Part>(!is_only_here(Part{}), first, rest...);
  } else if constexpr (!is_callable<Part>()) {
    return refused_flow<typename First::trace_mode, typename First::type,
                        wrong_argument<kind::flow, 1, kind::layer, kind_of<Part>>>();
  } else if constexpr (Wrapper<Part>) {
    return Part{}.around(passing_on<typename Part::wraps>{}, first, rest...);
  } else {
    return in_scope(Part{}, first, rest...);
  }
}
template <class Part>
template <class... F>
constexpr auto passing_on<Part>::operator()(const F&... x) const {
  return passed_on<Part>(x...);
}

// A layer, or what is no module, as one.
template <class Module>
struct as_module {
  using type = std::conditional_t<kind_of<Module> != kind::layer && is_callable<Module>(), Module, passing_on<Module>>;
};
template <class Module>
using module_of = typename as_module<Module>::type;

/// How many results a layer has: one, unless its type says `results`.
template <class L>
constexpr int result_count() {
  if constexpr (requires { L::results; }) return L::results;
  else return 1;
}

// As many flows as a refused layer would give.
template <class One, int... Index>
constexpr auto several(indices<Index...>) {
  if constexpr (sizeof...(Index) == 1) return One{};
  else return flows((static_cast<void>(Index), One{})...);
}

// What comes out of a part, without the verdict of a refused one: it was told, and behind it all is silent.
template <class Part, class Y>
constexpr auto silent(const Y& y) {
  if constexpr (Y::verdict::ok) return y;
  else
    return several<flow<typename Y::type, typename Y::trace_mode, refused_before>>(
        indices_below<result_count<Part>()>{});
}

}  // namespace detail

/// x through a layer or a module; `x | first | second` is a chain.
template <class T, class Mode, class Verdict, class Part>
constexpr auto operator|(const flow<T, Mode, Verdict>& x, const Part&) {
  const auto y = detail::passed_on<Part>(x);
  using verdict = typename decltype(y)::verdict;
  verdict::template refuse<verdict>();
  return detail::silent<Part>(y);
}

template <class Mode, class Part>
auto operator|(const flow<tensor<dyn>, Mode, fits>& x, const Part& part) {
  return detail::added(part, x);
}

}  // namespace tessera
