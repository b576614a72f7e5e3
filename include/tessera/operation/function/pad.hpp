#pragma once

#include <tessera/operation/function/function_layer.hpp>
#include <tessera/operation/function/operands.hpp>
#include <tessera/operation/layer/local_layers.hpp>
#include <tessera/operation/plan/number.hpp>

namespace tessera {

namespace functions {

/// A number before and behind a dimension, so many times. Of a cut one the result is balanced, and what of others'
/// parts is needed is exchanged inside.
template <int Dim, index_t Before, index_t After, engine::number_kind Of>
struct pad : engine::function {
  static constexpr const char* name = "pad";
  static constexpr engine::saved saves = engine::saved::nothing;
  engine::number n;

  constexpr engine::function_value on(const tensor_value& x) const {
    const refusal why = engine::first_of(engine::check_number(Of, n, x.element), widths_fit(x.layout));
    if (!why.ok()) return {{}, why};
    const layer_plan p = engine::plan_of(widths(x.layout), x);
    return {{p.why.ok() ? p.output() : layout(), x.element},
            engine::first_of(p.why, engine::plan_elementwise(x.layout).why)};
  }
  constexpr engine::exchange_values exchanges(const tensor_value& x) const {
    const layer_plan p = engine::plan_of(widths(x.layout), x);
    engine::exchange_values all = engine::no_items<engine::exchange_value, 4>;
    all.push({p.given(), p.used(), x.element});
    return all;
  }
  /// Backward copies what the result is of, and its gradient.
  constexpr void hold(layer_plan& p, const tensor_value& x) const { p.take_back(p.raw(), x.element); }
  /// How windows of one element stand, from the dimension on.
  static constexpr engine::pad_description widths(const layout& x) {
    engine::pad_description all;
    for (int d = Dim; d < x.dims.count; ++d)
      all.widths.push(d == Dim ? engine::padding_kernel(Before, After) : engine::padding_kernel(0, 0));
    return all;
  }

 private:
  static constexpr refusal widths_fit(const layout& x) {
    if (Dim < 0 || Dim >= x.dims.count) return refusal{code::dimension_not_there, Dim, x.dims.count};
    return x.dims.count - Dim > 8 ? refusal{code::list_full, 8} : refusal{};
  }
};

}  // namespace functions

/// x with a number before and behind a dimension, so many times: `pad<1, 2, 0>(x, -1)`; below 0 so many elements go.
template <int Dim, index_t Before, index_t After, engine::AnyTensor X, engine::Number N = int>
constexpr auto pad(const X& x, const N& n = 0) {
  functions::pad<Dim, Before, After, functions::engine::kind_of_number<N>> f;
  f.n = n;
  return call(f, x);
}

}  // namespace tessera
