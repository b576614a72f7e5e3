#pragma once

#include <tessera/operation/function/function_layer.hpp>
#include <tessera/operation/function/operands.hpp>
#include <tessera/operation/function/typed.hpp>

namespace tessera {

namespace functions {

/// An operation of one's own, all of which its type says: a constant signature, and what computes it of boxes, a lambda
/// without captures.
template <const signature& S, class Compute>
struct own : tessera::detail::constant_signature<S> {
  static constexpr const char* name = "apply";
  template <class... Layouts>
  constexpr const signature& product_on(const Layouts&...) const {
    return S;
  }
};
template <const signature& S, class Compute, class... Boxes>
  requires std::is_invocable_v<const Compute&, const Boxes&...>
auto compute(const own<S, Compute>&, const Boxes&... x) {
  return Compute{}(x...);
}

}  // namespace functions

/// An operation of one's own on flows: `apply<scaled>([](const at::Tensor& x, const at::Tensor& w) { … }, x, w)`.
template <const signature& S, class Compute, engine::FlowType First, engine::FlowType... Rest>
constexpr auto apply(const Compute&, const First& first, const Rest&... rest) {
  using verdict = std::conditional_t<std::is_empty_v<Compute> && std::is_default_constructible_v<Compute>, fits,
                                     verdicts::part_holds_values<>>;
  verdict::template refuse<verdict>();
  if constexpr (verdict::ok) return call(functions::own<S, Compute>{}, first, rest...);
  else return detail::refused_flow<typename First::trace_mode, typename First::type, engine::refused_before>();
}

namespace detail {

/// A function that its type names.
template <auto F>
struct constant_function {
  template <class... Boxes>
    requires std::is_invocable_v<decltype(F), const Boxes&...>
  constexpr auto operator()(const Boxes&... x) const {
    return F(x...);
  }
};

}  // namespace detail

/// An operation whose function is a constant, on tensors and on flows: `apply<scaled, at::relu>(x)`.
template <const signature& S, auto Compute, engine::AnyTensor First, engine::AnyTensor... Rest>
constexpr auto apply(const First& first, const Rest&... rest) {
  return apply<S>(detail::constant_function<Compute>{}, first, rest...);
}

}  // namespace tessera
