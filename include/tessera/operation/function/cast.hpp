#pragma once

#include <tessera/operation/function/elementwise.hpp>
#include <tessera/operation/function/function_layer.hpp>

namespace tessera {

namespace functions {

/// x in another element: rounded, or truncated to integers, which have no gradient. Terms do not pass: a sum of rounded
/// ones is rounded otherwise.
struct cast_value : engine::function {
  static constexpr const char* name = "cast";
  static constexpr engine::saved saves = engine::saved::nothing;
  using held = cast_value;  ///< what a program that is put together while it runs holds
  element to = element::float32;
  refusal why;

  constexpr signature signature_on(const layout& x) const {
    return engine::element_by_element(engine::linearity::nonlinear, x);
  }
  constexpr engine::function_value on(const tensor_value& x) const {
    const refusal lost = engine::is_complex(x.element) && !engine::is_complex(to)
                             ? refusal{code::no_function_of_element, static_cast<int>(x.element)}
                             : refusal{};
    if (const refusal first = engine::first_of(why, lost); !first.ok()) return {{}, first};
    return engine::infer_values(signature_on(x.layout), to, x.element, false, x);
  }
  /// Nothing happens to what has the element.
  constexpr void hold(layer_plan& p, const tensor_value& x) const {
    if (x.element == to) p.saves = engine::saved_tensors::viewing();
  }
};

/// The same to an element that a type names.
template <class Element>
struct cast : cast_value {
  constexpr cast() {
    to = engine::element_of<Element>;
    why = tessera::detail::check_kinds<kind::call, kind::element, Element>();
  }
};

}  // namespace functions

/// x in another element: `cast<float>(mask)`.
template <class Element, engine::AnyTensor X>
constexpr auto cast(const X& x) {
  return call(functions::cast<Element>{}, x);
}
/// The same to an element that only run time knows.
template <class X>
  requires(engine::kind_of<X> == kind::dynamic_tensor || engine::DynamicFlow<X>)
auto cast(const X& x, element to) {
  functions::cast_value f;
  f.to = to;
  return call(f, x);
}

}  // namespace tessera
