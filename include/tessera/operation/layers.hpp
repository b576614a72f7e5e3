#pragma once

#include <tessera/operation/contraction.hpp>
#include <tessera/operation/local_layers.hpp>

namespace tessera {

/// Extents of a sliding kernel, one for each dimension it slides over.
template <index_t... Extents>
struct kernel {};
/// Steps of a kernel; 1 unless said (of a pooling: its kernel's extents).
template <index_t... Steps>
struct stride {};
/// Zeros at both ends of each dimension; 0 unless said.
template <index_t... Widths>
struct padding {};
/// Zeros at the ends of each dimension, before and after: `padding_at<0, 1, 0, 1>`.
template <index_t... Widths>
struct padding_at {};
/// Distances of a kernel's taps; 1 unless said.
template <index_t... Distances>
struct dilation {};

/// Leaves out the bias of a linear layer or a convolution.
struct no_bias {};
/// The axes that cut a weight's outputs: the input is gathered over them.
template <class... Axes>
struct cut_out {};
/// The axes that cut a weight's inputs: the result is reduced over them.
template <class... Axes>
struct cut_in {};
/// The partition of a layer's result.
template <class Partition>
struct output_as {};

namespace detail {

/// What the options of a layer say.
struct layer_options {
  static_vector<sliding, 8> kernels;
  bool has_stride = false;
  contraction weights;
};

template <class Option>
struct option;
template <index_t... K>
struct option<kernel<K...>> {
  static constexpr void apply(layer_options& o) {
    (o.kernels.push({K, 1, 0, 0, 1}), ...);
  }
};
template <index_t... S>
struct option<stride<S...>> {
  static constexpr void apply(layer_options& o) {
    int i = 0;
    ((o.kernels[i++].stride = S), ...);
    o.has_stride = true;
  }
};
template <index_t... P>
struct option<padding<P...>> {
  static constexpr void apply(layer_options& o) {
    int i = 0;
    ((o.kernels[i].before = P, o.kernels[i++].after = P), ...);
  }
};
template <index_t... P>
struct option<padding_at<P...>> {
  static constexpr void apply(layer_options& o) {
    int i = 0;
    ((i % 2 == 0 ? o.kernels[i / 2].before = P : o.kernels[i / 2].after = P, ++i), ...);
  }
};
template <index_t... D>
struct option<dilation<D...>> {
  static constexpr void apply(layer_options& o) {
    int i = 0;
    ((o.kernels[i++].dilation = D), ...);
  }
};
template <>
struct option<no_bias> {
  static constexpr void apply(layer_options& o) { o.weights.bias = false; }
};
template <class... Axes>
struct option<cut_out<Axes...>> {
  static constexpr void apply(layer_options& o) {
    o.weights.chosen = true;
    (o.weights.cut_out.push(short_name_of<bare_axis<Axes>>()), ...);
  }
};
template <class... Axes>
struct option<cut_in<Axes...>> {
  static constexpr void apply(layer_options& o) {
    o.weights.chosen = true;
    (o.weights.cut_in.push(short_name_of<bare_axis<Axes>>()), ...);
  }
};
template <class P>
struct option<output_as<P>> {
  static constexpr void apply(layer_options& o) {
    o.weights.has_output = true;
    o.weights.output = layout_of_partition<P>;
    o.weights.why = partition_check<P>::value;
  }
};

template <class... Options>
constexpr layer_options read_options() {
  layer_options o;
  (option<Options>::apply(o), ...);
  return o;
}

}  // namespace detail

/// A layer says what it is by one function of its input's value: plan(tensor_value) → layer_plan.
template <class L>
concept Layer = requires(const tensor_value& x) {
  { L::plan(x) };
  { L::name };
};

namespace nn {

/// y = x wᵀ + b over the last dimension, x[…, in], w[Out, in], b[Out].
///
/// Options: `cut_out<axes…>`, `cut_in<axes…>` (the weight's cut; the cheapest unless said), `output_as<partition>`, `no_bias`.
template <index_t Out, class... Options>
struct linear {
  static constexpr const char* name = "linear";
  static constexpr contraction weights() {
    contraction c = detail::read_options<Options...>().weights;
    c.out = Out;
    return c;
  }
  static constexpr layer_plan plan(const tensor_value& x) { return plan_contraction(x.layout, weights()); }
};

/// y[n, o, …] = b[o] + Σ x[n, i, stride·… + dilation·k − padding] w[o, i, k] over a kernel of any number of dimensions.
///
/// Options: `kernel<…>` first, then `stride`, `padding`, `padding_at`, `dilation` and those of `linear`.
template <index_t Out, class... Options>
struct conv {
  static constexpr const char* name = "conv";
  static constexpr contraction weights() {
    const detail::layer_options o = detail::read_options<Options...>();
    contraction c = o.weights;
    c.feature = 1;
    c.out = Out;
    c.kernels = o.kernels;
    return c;
  }
  static constexpr layer_plan plan(const tensor_value& x) { return plan_contraction(x.layout, weights()); }
};

/// The maximum of each window; the stride is the kernel unless said.
template <class... Options>
struct max_pool {
  static constexpr const char* name = "max_pool";
  static constexpr static_vector<sliding, 8> kernels() {
    detail::layer_options o = detail::read_options<Options...>();
    if (!o.has_stride)
      for (sliding& s : o.kernels) s.stride = s.kernel;
    return o.kernels;
  }
  static constexpr layer_plan plan(const tensor_value& x) { return plan_pooling(x.layout, kernels()); }
};

/// max(x, 0).
struct relu {
  static constexpr const char* name = "relu";
  static constexpr layer_plan plan(const tensor_value& x) { return plan_elementwise(x.layout); }
};

/// Joins all dimensions behind the first: [n, c, h, w] → [n, c·h·w]; a cut of c becomes a cut in grains of h·w.
struct flatten {
  static constexpr const char* name = "flatten";
  static constexpr layer_plan plan(const tensor_value& x) { return plan_flatten(x.layout); }
};

/// Changes the partition: what is not yet here is moved.
template <class Partition>
struct repartition {
  static constexpr const char* name = "repartition";
  static constexpr bool only_here = true;  ///< the serial network has no such layer: it takes no number in its keys
  static constexpr layer_plan plan(const tensor_value& x) {
    if (!detail::partition_check<Partition>::value.ok()) {
      layer_plan p;
      p.why = detail::partition_check<Partition>::value;
      return p;
    }
    return plan_repartition(x.layout, layout_of_partition<Partition>);
  }
};

}  // namespace nn
}  // namespace tessera
