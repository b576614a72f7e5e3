#pragma once

#include <tessera/operation/functions/function.hpp>
#include <tessera/operation/functions/operands.hpp>

namespace tessera {

namespace functions {

/// x[…, i, k] y[…, k, j] → [… i, j].
struct matmul : function {
  static constexpr const char* name = "matmul";
  static constexpr saved saves = saved::operands;
  constexpr signature what(const layout& x, const layout&) const {
    signature s;
    s.kind = linearity::multilinear;
    letters left = letters_of(x.dims.count - 2);
    letters right = left;
    letters out = left;
    for (char c : {'x', 'z'}) left.push(c);
    for (char c : {'z', 'y'}) right.push(c);
    for (char c : {'x', 'y'}) out.push(c);
    s.operands.push(left);
    s.operands.push(right);
    s.result = out;
    return s;
  }
  constexpr function_value on(const tensor_value& x, const tensor_value& y) const {
    return infer_values(what(x.layout, y.layout), x.element, x, y);
  }
};

/// The sum of products that a constant signature names.
template <const signature& S>
struct einsum : function {
  static constexpr const char* name = "einsum";
  static constexpr saved saves = saved::operands;
  template <class... Layouts>
  constexpr signature what(const Layouts&...) const {
    signature s = S;
    s.kind = linearity::multilinear;
    if (!s.special.empty()) s.why = refusal{code::role_does_not_fit, 0};
    return s;
  }
  template <class... Values>
  constexpr function_value on(const tensor_value& x, const Values&... rest) const {
    return infer_values(what(), x.element, x, rest...);
  }
};

}  // namespace functions

/// x[…, i, k] y[…, k, j]; a contraction over a dimension that both have cut alike is partial.
template <class X, class Y>
  requires(DistributedTensor<X> || DistributedTensor<Y>)
constexpr auto matmul(const X& x, const Y& y) {
  return call(functions::matmul{}, x, y);
}

/// Σ of products over the letters that the result lacks: `einsum<scores>(q, k)` with `constexpr auto scores = operation("bqd,bkd->bqk")`.
template <const signature& S, AnyTensor X, AnyTensor... Rest>
constexpr auto einsum(const X& x, const Rest&... rest) {
  return call(functions::einsum<S>{}, x, rest...);
}

}  // namespace tessera
