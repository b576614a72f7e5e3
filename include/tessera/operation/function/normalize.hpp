#pragma once

#include <tessera/operation/function/reductions.hpp>

namespace tessera {

namespace functions {

/// x / max(‖x‖, ε) along a dimension; of a cut one, the workers add its squares.
template <int Dim>
struct normalize : engine::function {
  static constexpr const char* name = "normalize";
  engine::number n = 1e-12;

  constexpr engine::function_value on(const tensor_value& x) const {
    const refusal why = engine::reduced_by_exchange<Dim>(x, engine::takes::reals, engine::gives::same).why;
    return why.ok() ? engine::function_value{x, {}} : engine::function_value{{}, why};
  }
  /// The operand, of half types in float.
  constexpr void hold(layer_plan& p, const tensor_value& x) const {
    const bool half = engine::bytes_of(x.element) < engine::bytes_of(element::float32);
    p.saves = engine::saved_tensors::saving(half ? 0 : 1);
    const element e = half ? element::float32 : x.element;
    if (half) p.make(x.layout, e);
    if (e == element::float32) p.take(x.layout, e, 2);
    p.take_back(x.layout, e, 4);
    p.take(p.to(0), element::float64, 4);
    p.take_back(p.to(0), element::float64, 4);
  }
  /// The sum of squares.
  constexpr engine::exchange_values exchanges(const tensor_value& x) const {
    const layout whole = engine::reduced_by_exchange<Dim>(x, engine::takes::reals, engine::gives::same).result.layout;
    engine::exchange_values all = engine::no_items<engine::exchange_value, 4>;
    all.push(engine::combining<Dim>(x.layout, whole, combine::sum, element::float64));
    return all;
  }
};

}  // namespace functions

/// x / max(‖x‖, ε) along a dimension, cut or not: rows of length 1 for `normalize<1>`.
template <int Dim, engine::AnyTensor X>
constexpr auto normalize(const X& x, double eps = 1e-12) {
  functions::normalize<Dim> f;
  f.n = eps;
  return call(f, x);
}

}  // namespace tessera
