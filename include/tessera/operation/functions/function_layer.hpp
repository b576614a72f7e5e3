#pragma once

#include <tessera/operation/flow.hpp>
#include <tessera/operation/functions/function.hpp>

namespace tessera {

namespace detail {

/// A function of tensors as a layer, which the serial model has not. Of the number that it holds only the program knows.
template <class F, int Operands>
struct function_layer {
  static constexpr const char* name = F::name;
  static constexpr bool only_here = true;
  static constexpr function_layer what() { return {}; }
  template <class... Values>
  static constexpr layer_plan plan(const Values&... x) {
    const function_value y = F{}.on(x...);
    layer_plan p;
    if (p.why = y.why; !p.why.ok()) return p;
    (p.take(x.layout), ...);
    p.give(y.result.layout, y.result.element);
    if constexpr (requires { F{}.exchanges(x...); })
      for (const exchange_value& e : F{}.exchanges(x...)) p.exchange(e.from, e.to, e.element);
    if constexpr (requires { F::saves; }) p.holds = functions::footprint_of(F::saves);
    if constexpr (requires { F{}.hold(p, x...); }) F{}.hold(p, x...);
    return p;
  }
};

template <class F>
concept HoldsNumber = requires(const F& f) { functions::number(f.n); };

}  // namespace detail

template <class F, int Operands>
inline constexpr kind kind_of<detail::function_layer<F, Operands>> = kind::layer;

namespace functions {

/// The door for flows: a node of the program.
template <class F, FlowType First, FlowType... Rest>
  requires(kind_of<F> == kind::function && !DynamicFlow<First>)
constexpr auto call([[maybe_unused]] const F& f, const First& first, const Rest&... rest) {
  if constexpr (tessera::detail::HoldsNumber<F> && (First::verdict::ok && ... && Rest::verdict::ok)) {
    first.in->refuse(f.on(tessera::detail::described<typename First::type>::value, tessera::detail::described<typename Rest::type>::value...).why);
    if constexpr (requires { f.not_kept(); }) first.in->refuse(f.not_kept());
    first.in->hold(f.n);
  }
  const auto y = tessera::detail::passed_on<tessera::detail::function_layer<F, 1 + sizeof...(Rest)>>(first, rest...);
  using verdict = typename decltype(y)::verdict;
  verdict::template refuse<verdict>();
  return tessera::detail::silent<F>(y);
}

/// The same in a program that is put together while it runs.
template <class F, DynamicFlow First, DynamicFlow... Rest>
  requires(kind_of<F> == kind::function)
auto call([[maybe_unused]] const F& f, const First& first, const Rest&... rest) {
  return first.in->whole([&] {
    if constexpr (tessera::detail::HoldsNumber<F>) {
      first.in->refuse(f.on(first.in->value_of(first), rest.in->value_of(rest)...).why, F::name);
      if constexpr (requires { f.not_kept(); }) first.in->refuse(f.not_kept(), F::name);
      first.in->hold(f.n);
    }
    return tessera::detail::added(tessera::detail::function_layer<F, 1 + sizeof...(Rest)>{}, first, rest...);
  });
}

}  // namespace functions
}  // namespace tessera
