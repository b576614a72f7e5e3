#pragma once

#include <tessera/operation/layer/layers.hpp>

namespace tessera {

namespace engine {

/// A change of element.
struct cast_description {
  tessera::element element = tessera::element::float32;
  refusal why = {};
};

/// Plans a change of element: no terms pass it, since a sum of rounded ones is rounded otherwise.
constexpr layer_plan plan_of(const cast_description& layer, const tensor_value& x) {
  const bool fits = has_cotangent(layer.element) && (!is_complex(x.element) || is_complex(layer.element));
  layer_plan p;
  p.add_input(x.layout);
  p.add_output(x.layout, layer.element);
  p.saves = layer.element == x.element ? saved_tensors::viewing() : saved_tensors::saving(0);
  p.why = first_of(layer.why, fits ? refusal{} : refusal{code::no_function_of_element, static_cast<int>(x.element)},
                   plan_elementwise(x.layout).why);
  return p;
}

}  // namespace engine

namespace nn {

/// x rounded to an element, its gradient to that of x: `cast<bfloat16>`. Later layers compute in it;
/// `weights_as<float>` stores a layer's weights wider.
template <class Element = void>
struct cast : engine::described_layer<cast<Element>> {
  static constexpr const char* name = "cast";
  static constexpr bool only_here = true;  ///< the serial network has no such layer: it takes no number in its keys
  static constexpr engine::cast_description description() {
    return {engine::element_of<Element>, tessera::detail::check_kinds<kind::layer, kind::element, Element>()};
  }
};

}  // namespace nn

template <class Element>
inline constexpr kind engine::kind_of<nn::cast<Element>> = kind::layer;

}  // namespace tessera
