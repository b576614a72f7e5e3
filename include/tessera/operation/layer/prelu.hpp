#pragma once

#include <tessera/operation/layer/layers.hpp>
#include <tessera/operation/plan/plan_operation.hpp>

namespace tessera {

namespace engine {

/// A rectifier whose slope below 0 is learned.
struct prelu_description {
  bool channelwise = false;  ///< one of each channel, else one of all
  double init = 0.25;
  refusal why;  ///< what does not fit in the options themselves
};

/// Plans one: a slope of each channel lies cut where the channels are, and its gradient is summed over whatever else
/// cuts x.
constexpr layer_plan plan_of(const prelu_description& layer, const tensor_value& x) {
  if (!layer.why.ok()) return refused_layer(layer.why);
  if (!has_cotangent(x.element) || is_complex(x.element))
    return refused_layer(refusal{code::no_function_of_element, static_cast<int>(x.element)});
  layout w = weight_for(x.layout, {1});
  if (layer.channelwise) {
    if (x.layout.dims.count < 2)
      return refused_layer(refusal{code::layer_takes_other_dimensions, 2, x.layout.dims.count});
    const letters all = letters_of(x.layout.dims.count);
    letters channel;
    channel.push(all[1]);
    w = {};
    if (const refusal why = detail::meet_parameter(x.layout, all, channel, w); !why.ok()) return refused_layer(why);
  }
  layer_plan p = plan_elementwise(x.layout);
  p.saves = saved_tensors::saving(1, 1);
  p.saves.returning = 1;  // each element's part of the weight's gradient
  p.add_parameter({"weight", stored_form(w), w, init::constant(layer.init)});
  return p;
}

}  // namespace engine

namespace nn {

/// `prelu` with options that are values.
struct prelu_layer {
  static constexpr const char* name = "prelu";
  bool channelwise = false;
  double init = 0.25;

  constexpr engine::prelu_description description() const { return {channelwise, init, {}}; }
  constexpr layer_plan plan(const tensor_value& x) const { return engine::planned(description(), x); }
};

/// max(x, 0) + w·min(x, 0), with one slope w that is learned, from 1/4, or `channelwise` one of each channel (He et al.
/// 2015).
template <class... Options>
struct prelu : engine::described_layer<prelu<Options...>> {
  static constexpr const char* name = "prelu";
  static constexpr engine::option_kinds takes{engine::option_kind::channelwise};
  static constexpr engine::prelu_description description() {
    const auto o = tessera::detail::read_options<Options...>(takes);
    return {.channelwise = o.drop.channelwise, .why = o.weights.why};
  }
};

}  // namespace nn

template <class... Options>
inline constexpr kind engine::kind_of<nn::prelu<Options...>> = kind::layer;

}  // namespace tessera
