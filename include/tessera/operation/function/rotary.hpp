#pragma once

#include <tessera/operation/function/function_layer.hpp>
#include <tessera/operation/function/operands.hpp>
#include <tessera/operation/layer/local_layers.hpp>

namespace tessera {

namespace functions {

/// Rotates features i and i + d / 2 of the last dimension by the angle p · base^(−2i / d) of the global place p along a
/// dimension, wherever that is cut. It is linear, and its adjoint rotates back.
///
/// Su et al., RoFormer, 2021.
template <int Dim, index_t Base>
struct rotary : engine::function {
  static constexpr const char* name = "rotary";
  static constexpr engine::saved saves = engine::saved::nothing;

  constexpr signature signature_on(const layout& x) const {
    const int last = x.dims.count - 1;
    signature s;
    s.kind = engine::linearity::additive;
    s.operands.push(engine::letters_of(x.dims.count));
    s.result = s.operands[0];
    if (Dim < 0 || Dim >= last) s.why = refusal{code::dimension_not_there, Dim, last};
    else if (const index_t n = x.dims[last].extent; n != dynamic && n % 2 != 0) s.why = refusal{code::features_odd, n};
    else if (Base < 1) s.why = refusal{code::base_not_positive, Base};
    if (!s.why.ok()) return s;
    const char features[]{s.result[last], '\0'};
    return s.whole(features);
  }
  constexpr engine::function_value on(const tensor_value& x) const {
    return engine::local(signature_on(x.layout), engine::takes::reals, engine::gives::same, x);
  }
  /// Sines and cosines of all places and pairs; both halves of the result, and of a gradient a box around it.
  constexpr void hold(layer_plan& p, const tensor_value& x) const {
    const int last = x.layout.dims.count - 1;
    const element e = engine::bytes_of(x.element) < 4 ? element::float32 : x.element;
    const layout angles = engine::one_along(x.layout, [&](int d) { return d != Dim && d != last; });
    p.make(angles, e);
    p.take(angles, element::float64);
    p.take(x.layout, e);
    p.take_back(x.layout, e);
  }
};

}  // namespace functions

/// x [… t … d] whose pairs of features are rotated by their place along a dimension: `rotary<1>(queries)`.
template <int Dim, index_t Base = 10000, engine::AnyTensor X>
constexpr auto rotary(const X& x) {
  return call(functions::rotary<Dim, Base>{}, x);
}

}  // namespace tessera
