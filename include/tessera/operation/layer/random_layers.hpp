#pragma once

#include <tessera/operation/layer/local_layers.hpp>

namespace tessera {

namespace engine {

/// Zeros in place of elements, or of whole channels of a sample, with a probability.
///
/// With `alpha` they become −α, the least value of a selu. All elements are then scaled and shifted to keep mean 0 and
/// variance 1 (Klambauer et al. 2017).
struct dropout_description {
  double probability = 0;
  bool channelwise = false;
  bool alpha = false;
  refusal why;  ///< what does not fit in the options themselves
};

}  // namespace engine

namespace detail {

/// Where one number is drawn: for each element, or each channel of a sample.
constexpr layout drawn_over(const layout& x, const dropout_description& layer) {
  return one_along(x, [&](int d) { return layer.channelwise && d >= 2; });
}

/// A layer that draws keeps how often it did, and by which key: a number of 53 bits that is drawn itself, as an initial
/// value.
constexpr void keep_draws(layer_plan& p) {
  p.add_buffer({"draws", one_number(p.given()), init::zeros(), element::int64, true});
  p.add_buffer({"key", one_number(p.given()), init::uniform(0, 0x1p53), element::int64, true});
}

}  // namespace detail

namespace engine {

/// Plans a dropout: terms of one element are dropped together, so they pass where nothing is added.
constexpr layer_plan plan_of(const dropout_description& layer, const tensor_value& x) {
  if (!layer.why.ok()) return refused_layer(layer.why);
  if (!(layer.probability >= 0 && layer.probability <= 1)) return refused_layer(refusal{code::no_probability});
  if (layer.channelwise && x.layout.dims.count < 2)
    return refused_layer(refusal{code::layer_takes_other_dimensions, 2, x.layout.dims.count});
  if (!has_cotangent(x.element))
    return refused_layer(refusal{code::no_function_of_element, static_cast<int>(x.element)});
  layer_plan p = plan_elementwise(x.layout, layer.alpha ? linearity::nonlinear : linearity::additive);
  if (!p.why.ok()) return p;
  p.saves = saved_tensors::saving(0);
  p.saves.returning = layer.channelwise;  // masked, then scaled
  p.saves.later = !layer.channelwise;     // scaled, then masked
  p.make(detail::drawn_over(x.layout, layer), element::boolean);
  detail::keep_draws(p);
  return p;
}

/// A rectifier whose slope below 0 is drawn of each element, uniform between two bounds.
struct rrelu_description {
  double lower = 1.0 / 8;
  double upper = 1.0 / 3;
  refusal why;  ///< what does not fit in the options themselves
};

/// Plans one: each element times its slope, or 1.
constexpr layer_plan plan_of(const rrelu_description& layer, const tensor_value& x) {
  if (!layer.why.ok()) return refused_layer(layer.why);
  if (!(layer.lower <= layer.upper && layer.upper - layer.lower < 1e300))
    return refused_layer(refusal{code::activation_undefined});
  if (!has_cotangent(x.element) || is_complex(x.element))
    return refused_layer(refusal{code::no_function_of_element, static_cast<int>(x.element)});
  layer_plan p = plan_elementwise(x.layout);
  if (!p.why.ok()) return p;
  p.saves = saved_tensors::saving(0);
  if (x.element != element::float64) p.take(x.layout, element::float64);  // what is drawn
  p.take(x.layout, element::boolean);
  p.make(x.layout, x.element);
  detail::keep_draws(p);
  return p;
}

}  // namespace engine

}  // namespace tessera
