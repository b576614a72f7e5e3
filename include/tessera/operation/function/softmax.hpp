#pragma once

#include <tessera/operation/function/elementwise.hpp>
#include <tessera/operation/function/reductions.hpp>

namespace tessera {

namespace functions {

/// exp x / Σ exp x along a dimension, or its logarithm; of a cut one, the workers find it together.
template <int Dim, bool Log>
struct softmax : engine::function {
  static constexpr const char* name = Log ? "log_softmax" : "softmax";
  constexpr engine::function_value on(const tensor_value& x) const {
    const refusal why = engine::reduced_by_exchange<Dim>(x, engine::takes::reals, engine::gives::same).why;
    return why.ok() ? engine::function_value{x, {}} : engine::function_value{{}, why};
  }
  /// Of a whole dimension the result is kept, of a cut one what is summed.
  constexpr void hold(layer_plan& p, const tensor_value& x) const {
    const bool cut = !engine::same(p.from(1), p.to(1));
    p.saves = engine::saved_tensors::saving(0, 0, !cut);
    if (!cut) return;
    const element e = p.exchanged_element(1);
    p.make(x.layout, e);
    p.take(x.layout, e);
    p.take_back(x.layout, e, Log ? 0 : 4);
  }
  /// The largest element, then the sum; of half types in float.
  constexpr engine::exchange_values exchanges(const tensor_value& x) const {
    const layout whole = engine::reduced_by_exchange<Dim>(x, engine::takes::reals, engine::gives::same).result.layout;
    const element e = engine::bytes_of(x.element) < engine::bytes_of(element::float32) ? element::float32 : x.element;
    engine::exchange_values all = engine::no_items<engine::exchange_value, 4>;
    all.push(engine::combining<Dim>(x.layout, whole, combine::max, e));
    all.push(engine::combining<Dim>(x.layout, whole, combine::sum, e));
    return all;
  }
};

}  // namespace functions

/// exp x / Σ exp x along a dimension, cut or not.
template <int Dim, engine::AnyTensor X>
constexpr auto softmax(const X& x) {
  return call(functions::softmax<Dim, false>{}, x);
}
/// exp −x / Σ exp −x.
template <int Dim, engine::AnyTensor X>
constexpr auto softmin(const X& x) {
  return softmax<Dim>(neg(x));
}
/// The logarithm of softmax, without its loss of small numbers.
template <int Dim, engine::AnyTensor X>
constexpr auto log_softmax(const X& x) {
  return call(functions::softmax<Dim, true>{}, x);
}

}  // namespace tessera
