#pragma once

#include <tessera/operation/function/function_layer.hpp>
#include <tessera/operation/function/operands.hpp>
#include <tessera/operation/function/reductions.hpp>

namespace tessera {

namespace functions {

/// y[… n …] = Σ x[… k …] over k ≤ n.
template <int Dim>
struct cumsum : engine::function {
  static constexpr const char* name = "cumsum";
  static constexpr engine::saved saves = engine::saved::nothing;

  constexpr signature signature_on(const layout& x) const {
    signature s;
    s.kind = engine::linearity::additive;
    s.operands.push(engine::letters_of(x.dims.count));
    s.result = s.operands[0];
    s.why = engine::check_dims<Dim>(x);
    if (!s.why.ok()) return s;
    const char along[]{s.result[Dim], '\0'};
    return s.whole(along);
  }
  constexpr engine::function_value on(const tensor_value& x) const {
    return engine::counted(engine::local(signature_on(x.layout), engine::takes::everything, engine::gives::counts, x),
                           x);
  }
  constexpr void hold(layer_plan& p, const tensor_value&) const { p.saves.returning = 2; }  // turned round twice
};

}  // namespace functions

/// Sums of the elements up to each along a whole dimension: `cumsum<1>(x)`.
template <int Dim, engine::AnyTensor X>
constexpr auto cumsum(const X& x) {
  return call(functions::cumsum<Dim>{}, x);
}

}  // namespace tessera
