#pragma once

#include <tessera/operation/layer/contraction_plan.hpp>
#include <tessera/operation/layer/dropout.hpp>
#include <tessera/operation/program/layer.hpp>

namespace tessera {

/// A layer says what it is by one function of its operands' values: plan(tensor_value, …) → layer_plan. One whose
/// results lie on another mesh than its first operand names that `mesh_type`. A worker's computation is its
/// `forward(call)`, or that of the family whose value `description()` is (docs/adding-operations.md).
template <class L>
concept Layer = engine::kind_of<L> == kind::layer;

namespace nn {

/// y = x wᵀ + b over the last dimension, x[…, in], w[Out, in], b[Out].
///
/// Options: `cut_out<axes…>`, `cut_in<axes…>` (the weight's cut; the cheapest unless said), `output_as<partition>`,
/// `no_bias`, `weights_as<element>`, `round_terms`.
template <index_t Out, class... Options>
struct linear : engine::described_layer<linear<Out, Options...>>, detail::mesh_of_options<Options...> {
  static constexpr const char* name = "linear";
  static constexpr engine::option_kinds takes{engine::option_kind::cut_out, engine::option_kind::cut_in,
                                              engine::option_kind::output,  engine::option_kind::bias,
                                              engine::option_kind::weights, engine::option_kind::terms};
  static constexpr engine::contraction description() {
    engine::contraction c = detail::read_options<Options...>(takes).weights;
    c.out = Out;
    return c;
  }
};

/// y[e, …, o] = b[e, 0, o] + Σ x[e, …, i] w[e, i, o]: a linear layer of each expert, x[Experts, …, in], w[Experts, in,
/// Out], b[Experts, 1, Out]. Where the experts are cut their weights lie with them (Shazeer et al. 2017; Lepikhin et
/// al. 2021).
///
/// Options: those of `linear`.
template <index_t Experts, index_t Out, class... Options>
struct experts : engine::described_layer<experts<Experts, Out, Options...>>, detail::mesh_of_options<Options...> {
  static constexpr const char* name = "experts";
  static constexpr engine::option_kinds takes = linear<Out>::takes;
  static constexpr engine::contraction description() {
    engine::contraction c = detail::read_options<Options...>(takes).weights;
    c.out = Out;
    c.divide_among(Experts);
    return c;
  }
};

/// y[n, o, …] = b[o] + Σ x[n, i, stride·… + dilation·k − padding] w[o, i, k] over a kernel of 1 to 3 dimensions.
///
/// Options in any order: `kernel<…>`, `stride`, `padding`, `padding_at`, `padding_same`, `padding_valid`,
/// `padding_mode`, `dilation`, `groups` and those of `linear`.
template <index_t Out, class... Options>
struct conv : engine::described_layer<conv<Out, Options...>>, detail::mesh_of_options<Options...> {
  static constexpr const char* name = "conv";
  static constexpr engine::option_kinds takes{
      engine::option_kind::kernel,       engine::option_kind::stride,       engine::option_kind::padding,
      engine::option_kind::padding_rule, engine::option_kind::padding_mode, engine::option_kind::dilation,
      engine::option_kind::groups,       engine::option_kind::cut_out,      engine::option_kind::cut_in,
      engine::option_kind::output,       engine::option_kind::bias,         engine::option_kind::weights,
      engine::option_kind::terms};
  static constexpr engine::contraction description() { return detail::read_convolution<Options...>(takes, Out); }
};

/// The transpose of a convolution: y[n, o, stride·i + dilation·k − padding] = b[o] + Σ x[n, i, …] w[i, o, k]; of n
/// elements it gives (n − 1)·stride − 2·padding + dilation·(kernel − 1) + output_padding + 1.
///
/// Options in any order: `kernel<…>`, `stride`, `padding`, `padding_at`, `output_padding` or `output_size`, `dilation`,
/// `groups` and those of `linear`.
template <index_t Out, class... Options>
struct conv_transpose : engine::described_layer<conv_transpose<Out, Options...>>, detail::mesh_of_options<Options...> {
  static constexpr const char* name = "conv_transpose";
  static constexpr engine::option_kinds takes{
      engine::option_kind::kernel,         engine::option_kind::stride,   engine::option_kind::padding,
      engine::option_kind::output_padding, engine::option_kind::dilation, engine::option_kind::groups,
      engine::option_kind::cut_out,        engine::option_kind::cut_in,   engine::option_kind::output,
      engine::option_kind::bias,           engine::option_kind::weights,  engine::option_kind::terms};
  static constexpr engine::contraction description() {
    engine::contraction c = detail::read_convolution<Options...>(takes, Out);
    c.transposed = true;
    return c;
  }
};

/// The maximum of each window; the stride is the kernel unless said.
///
/// Options: `kernel<…>`, `stride`, `padding`, `padding_at`, `dilation`, `ceil_mode`.
template <class... Options>
struct max_pool : engine::described_layer<max_pool<Options...>> {
  static constexpr const char* name = "max_pool";
  static constexpr engine::option_kinds takes{engine::option_kind::kernel, engine::option_kind::stride,
                                              engine::option_kind::padding, engine::option_kind::dilation,
                                              engine::option_kind::ceil_mode};
  static constexpr engine::pooling description() {
    return detail::read_pooling<Options...>(takes, engine::pooling::kind::max);
  }
};

/// The average of each window: Σ x / divisor; the stride is the kernel unless said.
///
/// Options: `kernel<…>`, `stride`, `padding`, `padding_at`, `dilation`, `ceil_mode`, `exclude_padding`, `divisor<d>`.
template <class... Options>
struct avg_pool : engine::described_layer<avg_pool<Options...>> {
  static constexpr const char* name = "avg_pool";
  static constexpr engine::option_kinds takes{engine::option_kind::kernel,    engine::option_kind::stride,
                                              engine::option_kind::padding,   engine::option_kind::dilation,
                                              engine::option_kind::ceil_mode, engine::option_kind::exclude_padding,
                                              engine::option_kind::divisor};
  static constexpr engine::pooling description() {
    return detail::read_pooling<Options...>(takes, engine::pooling::kind::average);
  }
};

/// The mean over all dimensions behind the first two, of one element each then: where they are cut only sums move.
struct global_avg_pool : engine::described_layer<global_avg_pool> {
  static constexpr const char* name = "global_avg_pool";
  static constexpr engine::global_avg_pool_description description() { return {}; }
};

/// The dimensions behind the first two made larger or smaller, each output of the inputs around its place
/// (`resampling`).
///
/// Options: `factor<…>` (with `divisor<d>` each of them over d) or `size<…>`, one each of 1 to 3 dimensions;
/// `mode<interpolation::…>` (nearest), `align_corners`.
template <class... Options>
struct upsample : engine::described_layer<upsample<Options...>> {
  static constexpr const char* name = "upsample";
  static constexpr engine::option_kinds all{engine::option_kind::factor, engine::option_kind::divisor,
                                            engine::option_kind::interpolation, engine::option_kind::corners,
                                            engine::option_kind::antialias};
  static constexpr bool to_sizes = !detail::read_options<Options...>(all).up.sizes.empty();
  static constexpr engine::option_kinds takes =
      to_sizes ? engine::option_kinds{engine::option_kind::factor, engine::option_kind::interpolation,
                                      engine::option_kind::corners, engine::option_kind::antialias}
               : all;
  static constexpr engine::upsampling description() {
    detail::layer_options o = detail::read_options<Options...>(takes);
    if (o.pool.divisor > 1)
      for (double& f : o.up.factors) f /= static_cast<double>(o.pool.divisor);
    o.up.why = o.weights.why;
    return o.up;
  }
};

/// Widens the last dimensions by what their padding says, or cuts off where it is negative: `pad<padding_at<1, 1, 0,
/// -2>>`.
///
/// Widths before and after each dimension, in order; options: `padding_mode`.
template <class Widths = void, class... Options>
struct pad {
  static constexpr const char* name = "pad";
  static constexpr layer_plan plan(const tensor_value&) {
    const refusal another = detail::check_kinds<kind::layer, kind::option, Widths>();
    return engine::refused_layer(engine::first_of(another, refusal{code::option_not_taken, 0}));
  }
};
template <index_t... Widths, class... Options>
struct pad<padding_at<Widths...>, Options...> : engine::described_layer<pad<padding_at<Widths...>, Options...>> {
  static constexpr const char* name = "pad";
  static constexpr engine::option_kinds takes{engine::option_kind::padding_mode};
  static constexpr detail::layer_options options() {
    constexpr int count = sizeof...(Widths);
    detail::layer_options o;
    if (count % 2 != 0)  // widths come in pairs, before and after a dimension
      o.weights.why = refusal{code::option_of_other_dimensions, count + 1, count};
    if (count > 2 * o.kernels.capacity) o.weights.why = refusal{code::list_full, o.kernels.capacity};
    if (!o.weights.why.ok()) return o;
    const index_t all[]{Widths..., 0};
    for (int i = 0; i < count; i += 2) o.kernels.push(engine::padding_kernel(all[i], all[i + 1]));
    return detail::read_options<Options...>(takes, o);
  }
  static constexpr engine::pad_description description() {
    const detail::layer_options o = options();
    return {o.kernels, o.weights.why};
  }
};

/// The elements [Begin, End) of one dimension; an End below 0 counts from the far end.
template <int Dimension, index_t Begin, index_t End>
struct slice : engine::described_layer<slice<Dimension, Begin, End>> {
  static constexpr const char* name = "slice";
  static constexpr engine::slice_description description() { return {Dimension, Begin, End}; }
};

/// max(x, 0).
struct relu : engine::described_layer<relu> {
  static constexpr const char* name = "relu";
  static constexpr engine::relu_description description() { return {}; }
};

/// Joins all dimensions behind the first: [n, c, h, w] → [n, c·h·w]; a cut of c becomes a cut in grains of h·w.
struct flatten : engine::described_layer<flatten> {
  static constexpr const char* name = "flatten";
  static constexpr engine::flatten_description description() { return {}; }
};

/// Changes the partition: what is not yet here is moved.
template <class Partition = void>
struct repartition : layer<repartition<Partition>>, detail::mesh_of_options<output_as<Partition>> {
  static constexpr const char* name = "repartition";
  static constexpr bool moves_only = true;
  static constexpr engine::repartition_description description() { return {}; }
  static constexpr bool only_here = true;  ///< the serial network has no such layer: it takes no number in its keys
  static constexpr layer_plan plan(const tensor_value& x) {
    if constexpr (PartitionType<Partition>) {
      const detail::draft& to = detail::partition_draft<Partition>::value;
      return to.why.ok() ? engine::plan_repartition(x.layout, to.value) : engine::refused_layer(to.why);
    } else {
      return engine::refused_layer(detail::check_kinds<kind::layer, kind::partition, Partition>());
    }
  }
};

}  // namespace nn

template <index_t Out, class... Options>
inline constexpr kind engine::kind_of<nn::linear<Out, Options...>> = kind::layer;
template <index_t Experts, index_t Out, class... Options>
inline constexpr kind engine::kind_of<nn::experts<Experts, Out, Options...>> = kind::layer;
template <index_t Out, class... Options>
inline constexpr kind engine::kind_of<nn::conv<Out, Options...>> = kind::layer;
template <index_t Out, class... Options>
inline constexpr kind engine::kind_of<nn::conv_transpose<Out, Options...>> = kind::layer;
template <class... Options>
inline constexpr kind engine::kind_of<nn::max_pool<Options...>> = kind::layer;
template <class... Options>
inline constexpr kind engine::kind_of<nn::avg_pool<Options...>> = kind::layer;
template <class... Options>
inline constexpr kind engine::kind_of<nn::upsample<Options...>> = kind::layer;

}  // namespace tessera
