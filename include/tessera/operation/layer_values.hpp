#pragma once

#include <tessera/operation/cast.hpp>
#include <tessera/operation/embedding.hpp>
#include <tessera/operation/free_weight.hpp>
#include <tessera/operation/layers.hpp>
#include <tessera/operation/projection.hpp>
#include <tessera/operation/value_options.hpp>

namespace tessera {

namespace detail {

/// The element of weights, where it is not the input's.
constexpr void store_as(auto& what, const chosen<element>& weights) {
  what.has_element = weights.said();
  what.element = weights.as();
  if (weights.said()) what.why = first_of(what.why, check_gradient(weights.as()));
}

constexpr void choose(contraction& c, const axis_names& cut_out, const axis_names& cut_in, const chosen<layout>& output, index_t grain_out,
                      const chosen<element>& weights) {
  store_as(c, weights);
  c.grain_out = grain_out;
  if (grain_out < 1) c.why = first_of(c.why, refusal{code::grain_not_positive, 0, grain_out});
  c.cut_out = cut_out.list();
  c.cut_in = cut_in.list();
  c.chosen = !c.cut_out.empty() || !c.cut_in.empty();
  c.has_output = output.said();
  c.output = output.as();
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

// The layers as values, for programs that are put together while they run: what the options of a layer's type say are members.

/// `linear` as a value: `linear_layer{.out = 10}`.
struct linear_layer {
  static constexpr const char* name = "linear";
  index_t out = 0;
  bool bias = true;
  axis_names cut_out{};
  axis_names cut_in{};
  chosen<layout> output_as{};
  index_t grain_out = 1;  ///< outputs that no cut splits
  chosen<element> weights_as{};

  constexpr contraction what() const {
    contraction c;
    c.out = out;
    c.bias = bias;
    tessera::detail::choose(c, cut_out, cut_in, output_as, grain_out, weights_as);
    return c;
  }
  constexpr layer_plan plan(const tensor_value& x) const { return plan_contraction(x.layout, what()); }
};

/// `conv` as a value: `conv_layer{.out = 6, .kernel = {3, 3}, .padding = {1}}`.
struct conv_layer {
  static constexpr const char* name = "conv";
  index_t out = 0;
  per_dimension kernel{};
  per_dimension stride{};
  per_dimension padding{};
  per_dimension dilation{};
  boundary padding_mode = boundary::zero;
  index_t groups = 1;
  bool bias = true;
  axis_names cut_out{};
  axis_names cut_in{};
  chosen<layout> output_as{};
  index_t grain_out = 1;  ///< outputs that no cut splits
  chosen<element> weights_as{};
  bool padding_same = false;  ///< instead of `padding`: what keeps the extents

  constexpr contraction what() const {
    contraction c = tessera::detail::convolution({kernel, stride, padding, dilation, padding_mode}, out, groups, bias);
    if (padding_same && padding.said()) c.why = first_of(c.why, refusal{code::option_given_twice, 0, 1});
    if (padding_same) c.keep_extents();
    tessera::detail::choose(c, cut_out, cut_in, output_as, grain_out, weights_as);
    return c;
  }
  constexpr layer_plan plan(const tensor_value& x) const { return plan_contraction(x.layout, what()); }
};

/// `conv_transpose` as a value: `conv_transpose_layer{.out = 6, .kernel = {3, 3}, .stride = {2}, .output_padding = {1}}`.
struct conv_transpose_layer {
  static constexpr const char* name = "conv_transpose";
  index_t out = 0;
  per_dimension kernel{};
  per_dimension stride{};
  per_dimension padding{};
  per_dimension output_padding{};
  per_dimension output_size{};  ///< instead of it
  per_dimension dilation{};
  index_t groups = 1;
  bool bias = true;
  axis_names cut_out{};
  axis_names cut_in{};
  chosen<layout> output_as{};
  index_t grain_out = 1;  ///< outputs that no cut splits
  chosen<element> weights_as{};

  constexpr contraction what() const {
    contraction c = tessera::detail::convolution({kernel, stride, padding, dilation}, out, groups, bias);
    c.transposed = true;
    if (output_padding.said() && output_size.said()) c.why = first_of(c.why, refusal{code::option_given_twice, 0, 1});
    c.why = first_of(c.why, output_padding.check(kernel.count()), output_size.check(kernel.count()));
    for (int i = 0; i < c.kernels.count && c.why.ok(); ++i) {
      if (output_padding.said()) c.output_padding.push(output_padding[i]);
      if (output_size.said()) c.output_size.push(output_size[i]);
    }
    tessera::detail::choose(c, cut_out, cut_in, output_as, grain_out, weights_as);
    return c;
  }
  constexpr layer_plan plan(const tensor_value& x) const { return plan_contraction(x.layout, what()); }
};

/// `max_pool` as a value.
struct max_pool_layer {
  static constexpr const char* name = "max_pool";
  per_dimension kernel{};
  per_dimension stride{};
  per_dimension padding{};
  per_dimension dilation{};
  bool ceil_mode = false;

  constexpr pooling what() const {
    const kernel_options k{kernel, stride, padding, dilation, boundary::zero, true};
    pooling p;
    p.ceil_mode = ceil_mode;
    p.why = k.check();
    if (p.why.ok()) p.kernels = k.list();
    return p;
  }
  constexpr layer_plan plan(const tensor_value& x) const { return plan_pooling(x.layout, what()); }
};

/// `avg_pool` as a value.
struct avg_pool_layer {
  static constexpr const char* name = "avg_pool";
  per_dimension kernel{};
  per_dimension stride{};
  per_dimension padding{};
  per_dimension dilation{};
  bool ceil_mode = false;
  bool counts_padding = true;
  index_t divisor = 0;  ///< 0: what the window holds

  constexpr pooling what() const {
    pooling p = max_pool_layer{kernel, stride, padding, dilation, ceil_mode}.what();
    p.what = pooling::kind::average;
    p.counts_padding = counts_padding;
    p.divisor = divisor;
    if (divisor < 0) p.why = first_of(p.why, refusal{code::divisor_not_positive, divisor});
    return p;
  }
  constexpr layer_plan plan(const tensor_value& x) const { return plan_average(x, what()); }
};

/// `upsample` as a value: `upsample_layer{.factors = {1.5, 2}, .mode = interpolation::linear}`, or with `.sizes`.
struct upsample_layer {
  static constexpr const char* name = "upsample";
  numbers_per_dimension<double> factors{};
  per_dimension sizes{};
  interpolation mode = interpolation::nearest;
  bool align_corners = false;
  bool antialias = false;

  constexpr upsampling what() const {
    upsampling u;
    u.mode = mode;
    u.align_corners = align_corners;
    if (antialias) u.why = refusal{code::antialias_not_there};
    if (factors.said() && sizes.said()) u.why = first_of(u.why, refusal{code::option_given_twice, 0, 1});
    for (int count : {factors.count(), sizes.count()})
      if (count > u.sizes.capacity) u.why = first_of(u.why, refusal{code::wrong_kernel, count});
    if (!u.why.ok()) return u;
    for (int i = 0; i < factors.count(); ++i) u.factors.push(factors[i]);
    for (int i = 0; i < sizes.count(); ++i) u.sizes.push(sizes[i]);
    return u;
  }
  constexpr layer_plan plan(const tensor_value& x) const { return plan_upsampling(x, what()); }
};

/// `pad` as a value: widths before and after each of the last dimensions, in order.
struct pad_layer {
  static constexpr const char* name = "pad";
  per_dimension widths{};
  boundary padding_mode = boundary::zero;

  constexpr widening what() const {
    widening w;
    for (int i = 0; i + 1 < widths.count(); i += 2) w.widths.push(widened(widths[i], widths[i + 1], padding_mode));
    return w;
  }
  constexpr layer_plan plan(const tensor_value& x) const {
    if (widths.count() % 2 != 0) return refused_layer(refusal{code::option_of_other_dimensions, widths.count() + 1, widths.count()});
    return plan_widened(x.layout, what());
  }
};

/// `slice` as a value; an end below 0 counts from the far end.
struct slice_layer {
  static constexpr const char* name = "slice";
  int dimension = 0;
  index_t begin = 0;
  index_t end = 0;

  constexpr slicing what() const { return {dimension, begin, end}; }
  constexpr layer_plan plan(const tensor_value& x) const { return plan_slice(x.layout, what()); }
};

/// `repartition` as a value: the partition of a layout, whatever its extents.
struct repartition_layer {
  static constexpr const char* name = "repartition";
  static constexpr bool only_here = true;
  tessera::layout to{};

  constexpr moving what() const { return {}; }
  constexpr layer_plan plan(const tensor_value& x) const { return plan_repartition(x.layout, to); }
};

/// `weight` as a value.
struct weight_layer {
  static constexpr const char* name = "weight";
  tensor_value is{};
  initial_value initial{};

  constexpr free_parameter what() const { return {}; }
  constexpr layer_plan plan(const tensor_value& x) const { return plan_free_parameter(x, is, initial); }
};

/// `embedding` as a value: `embedding_layer{.rows = 100, .features = 16}`.
struct embedding_layer {
  static constexpr const char* name = "embedding";
  index_t rows = 0;
  index_t features = 0;
  element weights_as = element::float32;
  axis_names cut_out{};
  axis_names cut_in{};
  chosen<layout> output_as{};
  chosen<index_t> padding_idx{};

  constexpr lookup what() const { return {rows, features, weights_as, cut_out.list(), cut_in.list(), output_as.said(), output_as.as(), padding_idx}; }
  constexpr layer_plan plan(const tensor_value& x) const { return plan_lookup(x, what()); }
};

/// `heads` as a value.
struct heads_layer {
  static constexpr const char* name = "heads";
  static constexpr int results = 3;
  index_t heads = 0;
  index_t key_heads = 0;
  index_t features = 0;
  bool bias = true;
  axis_names cut_out{};
  chosen<element> weights_as{};

  constexpr projection what() const {
    projection p = tessera::detail::heads_of(heads, key_heads, features);
    p.bias = bias;
    p.cut_out = cut_out.list();
    tessera::detail::store_as(p, weights_as);
    return p;
  }
  constexpr layer_plan plan(const tensor_value& x) const { return plan_projection(x.layout, what()); }
};

/// `gated` as a value.
struct gated_layer {
  static constexpr const char* name = "gated";
  static constexpr int results = 2;
  index_t out = 0;
  bool bias = true;
  axis_names cut_out{};
  chosen<element> weights_as{};

  constexpr projection what() const {
    projection p = tessera::detail::gate_of(out);
    p.bias = bias;
    p.cut_out = cut_out.list();
    tessera::detail::store_as(p, weights_as);
    return p;
  }
  constexpr layer_plan plan(const tensor_value& x) const { return plan_projection(x.layout, what()); }
};

/// `cast` as a value.
struct cast_layer {
  static constexpr const char* name = "cast";
  static constexpr bool only_here = true;
  element to = element::float32;

  constexpr casting what() const { return {to}; }
  constexpr layer_plan plan(const tensor_value& x) const { return plan_cast(x, what()); }
};

}  // namespace nn
}  // namespace tessera
