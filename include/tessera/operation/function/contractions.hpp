#pragma once

#include <tessera/operation/function/elementwise.hpp>
#include <tessera/operation/function/operands.hpp>
#include <tessera/operation/plan/stream_exchanges.hpp>

namespace tessera {

namespace functions {

namespace engine {

/// A sum of products as a signature says it; of roles it may have a dimension that is streamed.
constexpr signature product_signature(signature s) {
  s.kind = linearity::multilinear;
  for (const treated& t : s.special)
    if (t.how != treatment::streamed) s.why = refusal{code::role_does_not_fit, 0};
  return s;
}

}  // namespace engine

/// x[…, i, k] y[…, k, j] → [… i, j]. Dimensions before the last two are compared from the last one on, as those of
/// elementwise functions.
struct matmul : engine::function {
  static constexpr const char* name = "matmul";
  static constexpr engine::saved saves = engine::saved::operands;
  constexpr signature signature_on(const layout& x, const layout& y) const {
    for (const layout* each : {&x, &y})
      if (each->dims.count < 2)
        return refused(refusal{code::operand_of_other_dimensions, each == &y, 2, each->dims.count});
    const layout* const both[]{&x, &y};
    signature s = detail::element_by_element(engine::linearity::multilinear, both, 2, 2);
    for (char c : {'x', 'z'}) s.operands[0].push(c);
    for (char c : {'z', 'y'}) s.operands[1].push(c);
    for (char c : {'x', 'y'}) s.result.push(c);
    return s;
  }
  constexpr signature product_on(const layout& x, const layout& y) const { return signature_on(x, y); }
  constexpr engine::function_value on(const tensor_value& x, const tensor_value& y) const {
    return engine::local(signature_on(x.layout, y.layout), engine::takes::numbers, engine::gives::same, x, y);
  }

 private:
  static constexpr signature refused(const refusal& why) {
    signature s;
    s.why = why;
    return s;
  }
};

/// The sum of products that a constant signature names; one dimension may be streamed.
template <const signature& S>
struct einsum : engine::function {
  static constexpr const char* name = "einsum";
  static constexpr engine::saved saves = engine::saved::operands;
  template <class... Layouts>
    requires(S.streams() == 0)
  constexpr signature signature_on(const Layouts&...) const {
    return engine::product_signature(S);
  }
  template <class... Layouts>
  constexpr signature product_on(const Layouts&...) const {
    return engine::product_signature(S);
  }
  template <class... Values>
  constexpr engine::function_value on(const tensor_value& x, const Values&... rest) const {
    return engine::local(engine::product_signature(S), engine::takes::numbers, engine::gives::same, x, rest...);
  }
  template <class... Values>
    requires(S.streams() != 0)
  constexpr engine::exchange_values exchanges(const Values&... x) const {
    return engine::stream_exchanges(S, x...);
  }
};

}  // namespace functions

/// x[…, i, k] y[…, k, j]; a contraction over a dimension that both have cut alike is partial. Of the dimensions before
/// them, one that an operand lacks or has one uncut element of is repeated.
template <class X, class Y>
  requires(DistributedTensor<X> || DistributedTensor<Y>)
constexpr auto matmul(const X& x, const Y& y) {
  return call(functions::matmul{}, x, y);
}

/// Σ of products over the letters that the result lacks: `einsum<scores>(q, k)` with `constexpr auto scores =
/// operation("bqd,bkd->bqk")`.
template <const signature& S, engine::AnyTensor X, engine::AnyTensor... Rest>
constexpr auto einsum(const X& x, const Rest&... rest) {
  return call(functions::einsum<S>{}, x, rest...);
}

}  // namespace tessera
