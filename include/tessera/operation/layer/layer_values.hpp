#pragma once

#include <tessera/operation/layer/adaptive_pooling.hpp>
#include <tessera/operation/layer/cast.hpp>
#include <tessera/operation/layer/contraction_values.hpp>
#include <tessera/operation/layer/embedding.hpp>
#include <tessera/operation/layer/free_weight.hpp>
#include <tessera/operation/layer/layers.hpp>
#include <tessera/operation/layer/pixel_shuffle.hpp>
#include <tessera/operation/layer/prelu.hpp>
#include <tessera/operation/layer/projection.hpp>
#include <tessera/operation/layer/rrelu.hpp>
#include <tessera/operation/layer/unfold.hpp>
#include <tessera/operation/layer/value_options.hpp>

namespace tessera {

namespace nn {

// The layers as values, for programs that are put together while they run: what the options of a layer's type say are
// members.

/// `max_pool` as a value.
struct max_pool_layer {
  static constexpr const char* name = "max_pool";
  engine::per_dimension kernel{};
  engine::per_dimension stride{};
  engine::per_dimension padding{};
  engine::per_dimension dilation{};
  bool ceil_mode = false;

  constexpr engine::pooling description() const {
    const engine::kernel_options k{kernel, stride, padding, dilation, {}, true};
    engine::pooling p;
    p.ceil_mode = ceil_mode;
    p.why = k.check();
    if (p.why.ok()) p.kernels = k.list();
    return p;
  }
  constexpr layer_plan plan(const tensor_value& x) const { return engine::planned(description(), x); }
};

/// `avg_pool` as a value.
struct avg_pool_layer {
  static constexpr const char* name = "avg_pool";
  engine::per_dimension kernel{};
  engine::per_dimension stride{};
  engine::per_dimension padding{};
  engine::per_dimension dilation{};
  bool ceil_mode = false;
  bool counts_padding = true;
  index_t divisor = 0;  ///< 0: what the window holds

  constexpr engine::pooling description() const {
    engine::pooling p = max_pool_layer{kernel, stride, padding, dilation, ceil_mode}.description();
    p.is = engine::pooling::kind::average;
    p.counts_padding = counts_padding;
    p.divisor = divisor;
    if (divisor < 0) p.why = engine::first_of(p.why, refusal{code::divisor_not_positive, divisor});
    return p;
  }
  constexpr layer_plan plan(const tensor_value& x) const { return engine::planned(description(), x); }
};

/// `upsample` as a value: `upsample_layer{.factors = {1.5, 2}, .mode = interpolation::linear}`, or with `.sizes`.
struct upsample_layer {
  static constexpr const char* name = "upsample";
  engine::numbers_per_dimension<double> factors{};
  engine::per_dimension sizes{};
  interpolation mode = interpolation::nearest;
  bool align_corners = false;
  bool antialias = false;

  constexpr engine::upsampling description() const {
    engine::upsampling u;
    u.mode = mode;
    u.align_corners = align_corners;
    if (antialias) u.why = refusal{code::antialias_not_there};
    if (factors.is_set() && sizes.is_set()) u.why = engine::first_of(u.why, refusal{code::option_given_twice, 0, 1});
    for (int count : {factors.count(), sizes.count()})
      if (count > u.sizes.capacity) u.why = engine::first_of(u.why, refusal{code::wrong_kernel, count});
    if (!u.why.ok()) return u;
    for (int i = 0; i < factors.count(); ++i) u.factors.push(factors[i]);
    for (int i = 0; i < sizes.count(); ++i) u.sizes.push(sizes[i]);
    return u;
  }
  constexpr layer_plan plan(const tensor_value& x) const { return engine::planned(description(), x); }
};

/// `pad` as a value: widths before and after each of the last dimensions, in order.
struct pad_layer {
  static constexpr const char* name = "pad";
  engine::per_dimension widths{};
  engine::boundaries padding_mode{};

  constexpr engine::pad_description description() const {
    engine::pad_description w;
    if (widths.count() % 2 != 0) w.why = refusal{code::option_of_other_dimensions, widths.count() + 1, widths.count()};
    w.why = engine::first_of(w.why, padding_mode.check(widths.count() / 2));
    for (int i = 0; i + 1 < widths.count() && w.why.ok(); i += 2)
      w.widths.push(engine::padding_kernel(widths[i], widths[i + 1], padding_mode.at(i / 2)));
    return w;
  }
  constexpr layer_plan plan(const tensor_value& x) const { return engine::planned(description(), x); }
};

/// `slice` as a value; an end below 0 counts from the far end.
struct slice_layer {
  static constexpr const char* name = "slice";
  int dimension = 0;
  index_t begin = 0;
  index_t end = 0;

  constexpr engine::slice_description description() const { return {dimension, begin, end}; }
  constexpr layer_plan plan(const tensor_value& x) const { return engine::planned(description(), x); }
};

/// `repartition` as a value: the partition of a layout, whatever its extents.
struct repartition_layer {
  static constexpr const char* name = "repartition";
  static constexpr bool moves_only = true;
  static constexpr bool only_here = true;
  tessera::layout to{};

  constexpr engine::repartition_description description() const { return {}; }
  constexpr layer_plan plan(const tensor_value& x) const { return engine::plan_repartition(x.layout, to); }
};

namespace engine {

/// `weight` as a value.
struct weight_layer {
  static constexpr const char* name = "weight";
  tensor_value is{};
  initial_value initial{};

  constexpr engine::free_parameter description() const { return {}; }
  constexpr layer_plan plan(const tensor_value& x) const { return engine::plan_free_parameter(x, is, initial); }
};

/// `constant` as a value.
struct constant_layer {
  static constexpr const char* name = "constant";
  tensor_value is{};
  initial_value initial{};

  constexpr engine::free_buffer description() const { return {}; }
  constexpr layer_plan plan(const tensor_value& x) const { return engine::plan_free_buffer(x, is, initial); }
};

}  // namespace engine

/// `embedding` as a value: `embedding_layer{.rows = 100, .features = 16}`.
struct embedding_layer {
  static constexpr const char* name = "embedding";
  index_t rows = 0;
  index_t features = 0;
  element weights_as = element::float32;
  engine::axis_names cut_out{};
  engine::axis_names cut_in{};
  engine::setting<layout> output_as{};
  engine::setting<index_t> padding_idx{};
  engine::setting<double> max_norm{};
  double norm_type = 2;
  bool scale_grad_by_freq = false;
  bool frozen = false;
  bool sparse = false;

  constexpr engine::lookup description() const {
    return {rows,          features,           weights_as,         cut_out.list(),
            cut_in.list(), output_as.is_set(), output_as.value(),  padding_idx,
            max_norm,      norm_type,          scale_grad_by_freq, frozen,
            sparse};
  }
  constexpr layer_plan plan(const tensor_value& x) const { return engine::planned(description(), x); }
};

/// `heads` as a value.
struct heads_layer {
  static constexpr const char* name = "heads";
  static constexpr int results = 3;
  index_t heads = 0;
  index_t key_heads = 0;
  index_t features = 0;
  bool bias = true;
  engine::axis_names cut_out{};
  engine::setting<element> weights_as{};

  constexpr engine::projection description() const {
    engine::projection p = tessera::detail::heads_of(heads, key_heads, features);
    p.bias = bias;
    p.cut_out = cut_out.list();
    tessera::detail::store_as(p, weights_as);
    return p;
  }
  constexpr layer_plan plan(const tensor_value& x) const { return engine::planned(description(), x); }
};

/// `gated` as a value.
struct gated_layer {
  static constexpr const char* name = "gated";
  static constexpr int results = 2;
  index_t out = 0;
  bool bias = true;
  engine::axis_names cut_out{};
  engine::setting<element> weights_as{};

  constexpr engine::projection description() const {
    engine::projection p = tessera::detail::gate_of(out);
    p.bias = bias;
    p.cut_out = cut_out.list();
    tessera::detail::store_as(p, weights_as);
    return p;
  }
  constexpr layer_plan plan(const tensor_value& x) const { return engine::planned(description(), x); }
};

/// `gated_experts` as a value.
struct gated_experts_layer {
  static constexpr const char* name = "gated_experts";
  static constexpr int results = 2;
  index_t experts = 0;
  index_t out = 0;
  bool bias = true;
  engine::axis_names cut_out{};
  engine::setting<element> weights_as{};

  constexpr engine::projection description() const {
    engine::projection p = tessera::detail::gate_of_each(experts, out);
    p.bias = bias;
    p.cut_out = cut_out.list();
    tessera::detail::store_as(p, weights_as);
    return p;
  }
  constexpr layer_plan plan(const tensor_value& x) const { return engine::planned(description(), x); }
};

/// `cast` as a value.
struct cast_layer {
  static constexpr const char* name = "cast";
  static constexpr bool only_here = true;
  element to = element::float32;

  constexpr engine::cast_description description() const { return {to}; }
  constexpr layer_plan plan(const tensor_value& x) const { return engine::planned(description(), x); }
};

}  // namespace nn
}  // namespace tessera
