#pragma once

#include <tessera/operation/layer/layers.hpp>
#include <tessera/operation/layer/value_options.hpp>

namespace tessera {

namespace detail {

/// The element of weights, where it is not the input's.
constexpr void store_as(auto& layer, const setting<element>& weights) {
  layer.has_element = weights.is_set();
  layer.element = weights.value();
  if (weights.is_set()) layer.why = first_of(layer.why, check_gradient(weights.value()));
}

constexpr void choose(contraction& c, const axis_names& cut_out, const axis_names& cut_in,
                      const setting<layout>& output, index_t grain_out, const setting<element>& weights,
                      bool round_terms) {
  store_as(c, weights);
  c.round_terms = round_terms;
  c.grain_out = grain_out;
  if (grain_out < 1) c.why = first_of(c.why, refusal{code::grain_not_positive, 0, grain_out});
  c.cut_out = cut_out.list();
  c.cut_in = cut_in.list();
  c.cut_is_set = !c.cut_out.empty() || !c.cut_in.empty();
  c.has_output = output.is_set();
  c.output = output.value();
}

constexpr contraction convolution(const kernel_options& k, index_t out, index_t groups, bool bias) {
  contraction c;
  c.feature = 1;
  c.out = out;
  c.groups = groups;
  c.bias = bias;
  c.why = k.check();
  if (c.why.ok()) c.kernels = k.list();
  return c;
}

}  // namespace detail

namespace nn {

/// `linear` as a value: `linear_layer{.out = 10}`.
struct linear_layer {
  static constexpr const char* name = "linear";
  index_t out = 0;
  bool bias = true;
  engine::axis_names cut_out{};
  engine::axis_names cut_in{};
  engine::setting<layout> output_as{};
  index_t grain_out = 1;  ///< outputs that no cut splits
  engine::setting<element> weights_as{};
  bool round_terms = false;  ///< of a half type, before they travel

  constexpr engine::contraction description() const {
    engine::contraction c;
    c.out = out;
    c.bias = bias;
    tessera::detail::choose(c, cut_out, cut_in, output_as, grain_out, weights_as, round_terms);
    return c;
  }
  constexpr layer_plan plan(const tensor_value& x) const { return engine::planned(description(), x); }
};

/// `experts` as a value: `experts_layer{.experts = 8, .out = 64}`.
struct experts_layer {
  static constexpr const char* name = "experts";
  index_t experts = 0;
  index_t out = 0;
  bool bias = true;
  engine::axis_names cut_out{};
  engine::axis_names cut_in{};
  engine::setting<layout> output_as{};
  index_t grain_out = 1;  ///< outputs that no cut splits
  engine::setting<element> weights_as{};
  bool round_terms = false;  ///< of a half type, before they travel

  constexpr engine::contraction description() const {
    engine::contraction c =
        linear_layer{out, bias, cut_out, cut_in, output_as, grain_out, weights_as, round_terms}.description();
    c.divide_among(experts);
    return c;
  }
  constexpr layer_plan plan(const tensor_value& x) const { return engine::planned(description(), x); }
};

/// `conv` as a value: `conv_layer{.out = 6, .kernel = {3, 3}, .padding = {1}}`.
struct conv_layer {
  static constexpr const char* name = "conv";
  index_t out = 0;
  engine::per_dimension kernel{};
  engine::per_dimension stride{};
  engine::per_dimension padding{};
  engine::per_dimension dilation{};
  engine::boundaries padding_mode{};
  index_t groups = 1;
  bool bias = true;
  engine::axis_names cut_out{};
  engine::axis_names cut_in{};
  engine::setting<layout> output_as{};
  index_t grain_out = 1;  ///< outputs that no cut splits
  engine::setting<element> weights_as{};
  bool padding_same = false;  ///< instead of `padding`: what keeps the extents
  bool round_terms = false;   ///< of a half type, before they travel

  constexpr engine::contraction description() const {
    engine::contraction c =
        tessera::detail::convolution({kernel, stride, padding, dilation, padding_mode}, out, groups, bias);
    if (padding_same && padding.is_set()) c.why = engine::first_of(c.why, refusal{code::option_given_twice, 0, 1});
    if (padding_same) c.keep_extents();
    tessera::detail::choose(c, cut_out, cut_in, output_as, grain_out, weights_as, round_terms);
    return c;
  }
  constexpr layer_plan plan(const tensor_value& x) const { return engine::planned(description(), x); }
};

/// `conv_transpose` as a value: `conv_transpose_layer{.out = 6, .kernel = {3, 3}, .stride = {2}, .output_padding =
/// {1}}`.
struct conv_transpose_layer {
  static constexpr const char* name = "conv_transpose";
  index_t out = 0;
  engine::per_dimension kernel{};
  engine::per_dimension stride{};
  engine::per_dimension padding{};
  engine::per_dimension output_padding{};
  engine::per_dimension output_size{};  ///< instead of it
  engine::per_dimension dilation{};
  index_t groups = 1;
  bool bias = true;
  engine::axis_names cut_out{};
  engine::axis_names cut_in{};
  engine::setting<layout> output_as{};
  index_t grain_out = 1;  ///< outputs that no cut splits
  engine::setting<element> weights_as{};
  bool round_terms = false;  ///< of a half type, before they travel

  constexpr engine::contraction description() const {
    engine::contraction c = tessera::detail::convolution({kernel, stride, padding, dilation}, out, groups, bias);
    c.transposed = true;
    if (output_padding.is_set() && output_size.is_set())
      c.why = engine::first_of(c.why, refusal{code::option_given_twice, 0, 1});
    c.why = engine::first_of(c.why, output_padding.check(kernel.count()), output_size.check(kernel.count()));
    for (int i = 0; i < c.kernels.count && c.why.ok(); ++i) {
      if (output_padding.is_set()) c.output_padding.push(output_padding[i]);
      if (output_size.is_set()) c.output_size.push(output_size[i]);
    }
    tessera::detail::choose(c, cut_out, cut_in, output_as, grain_out, weights_as, round_terms);
    return c;
  }
  constexpr layer_plan plan(const tensor_value& x) const { return engine::planned(description(), x); }
};

}  // namespace nn
}  // namespace tessera
