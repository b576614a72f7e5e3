#pragma once

#include <tessera/operation/plan/function.hpp>
#include <tessera/operation/plan/signature_products.hpp>
#include <tessera/operation/program/flow.hpp>

namespace tessera {

namespace detail {

// A plan takes what a function gives for operands that lie so.
constexpr void plan_operands(layer_plan& p, const function_value& y, std::initializer_list<const layout*> operands) {
  if (p.why = y.why; !p.why.ok()) return;
  for (const layout* x : operands) p.add_input(*x);
  p.add_output(y.result.layout, y.result.element);
}

/// A function of tensors as a layer, which the serial model does not have.
template <class F, class... Values>
constexpr layer_plan plan_function(const F& f, const Values&... x) {
  layer_plan p;
  const function_value y = f.on(x...);
  plan_operands(p, y, {&x.layout...});
  if (!p.why.ok()) return p;
  if constexpr (requires { f.exchanges(x...); })
    for (const exchange_value& e : f.exchanges(x...)) p.add_exchange(e.from, e.to, e.element, true, e.streams);
  if constexpr (requires { F::saves; }) {
    p.saves = functions::engine::footprint_of(F::saves);
    if (functions::engine::keeps_its_own(F::saves)) p.make(p.raw(), y.result.element);
  }
  if constexpr (requires { F::more; }) {
    const element given[]{x.element...};
    if (has_cotangent(y.result.element)) p.take_back(p.raw(), y.result.element, F::more);
    else p.take(p.raw(), given[0], F::more);
  }
  if constexpr (requires { f.hold(p, x...); }) f.hold(p, x...);
  if constexpr (requires { f.product_on(x.layout...); }) count_products(p, f.product_on(x.layout...));
  return p;
}

/// A function as a layer. Of the number that it holds only the program knows.
template <class F, int Operands>
struct function_layer {
  static constexpr const char* name = F::name;
  static constexpr bool only_here = true;
  static constexpr bool is_function = true;
  static constexpr function_layer description() { return {}; }
  template <class... Values>
    requires(sizeof...(Values) == Operands)
  static constexpr layer_plan plan(const Values&... x) {
    return plan_function(F{}, x...);
  }
};

/// The same of a function that holds something, in a program that is put together while it runs and keeps it.
template <class F, int Operands>
struct held_function {
  static constexpr const char* name = F::name;
  static constexpr bool only_here = true;
  static constexpr bool is_function = true;
  F f;

  held_function description() const { return *this; }
  template <class... Values>
    requires(sizeof...(Values) == Operands)
  layer_plan plan(const Values&... x) const {
    return plan_function(f, x...);
  }
};

template <class F>
concept HoldsNumber = requires(const F& f) { functions::engine::number(f.n); };

}  // namespace detail

template <class F, int Operands>
inline constexpr kind engine::kind_of<detail::function_layer<F, Operands>> = kind::layer;
template <class F, int Operands>
inline constexpr kind engine::kind_of<detail::held_function<F, Operands>> = kind::layer;

namespace functions {

/// The entry point for flows: a node of the program.
template <class F, engine::FlowType First, engine::FlowType... Rest>
  requires(engine::kind_of<F> == kind::function && !engine::DynamicFlow<First>)
constexpr auto call([[maybe_unused]] const F& f, const First& first, const Rest&... rest) {
  if constexpr (tessera::detail::HoldsNumber<F> && (First::verdict::ok && ... && Rest::verdict::ok)) {
    first.in->refuse(f.on(tessera::detail::described<typename First::type>::value,
                          tessera::detail::described<typename Rest::type>::value...)
                         .why);
    if constexpr (requires { f.not_kept(); }) first.in->refuse(f.not_kept());
    first.in->set_scalar(f.n);
  }
  const auto y = tessera::detail::passed_on<tessera::detail::function_layer<F, 1 + sizeof...(Rest)>>(first, rest...);
  using verdict = typename decltype(y)::verdict;
  verdict::template refuse<verdict>();
  return tessera::detail::silent<F>(y);
}

/// The same in a program that is put together while it runs.
template <class F, engine::DynamicFlow First, engine::DynamicFlow... Rest>
  requires(engine::kind_of<F> == kind::function)
auto call([[maybe_unused]] const F& f, const First& first, const Rest&... rest) {
  constexpr int operands = 1 + sizeof...(Rest);
  if constexpr (requires { f.not_kept(); }) first.in->refuse(f.not_kept(), F::name);
  if constexpr (requires { typename F::held; })
    return tessera::detail::added(tessera::detail::held_function<typename F::held, operands>{f}, first, rest...);
  else if constexpr (tessera::detail::HoldsNumber<F>)
    return tessera::detail::added(tessera::detail::held_function<F, operands>{f}, first, rest...);
  else return tessera::detail::added(tessera::detail::function_layer<F, operands>{}, first, rest...);
}

}  // namespace functions
}  // namespace tessera
