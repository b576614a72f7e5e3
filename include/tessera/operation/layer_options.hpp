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
/// What lies in the padding: `padding_mode<boundary::reflect>`; zeros unless said.
template <boundary Edge>
struct padding_mode {};
/// Groups of features that see only each other; 1 unless said.
template <index_t Count>
struct groups {};
/// A pooling counts a last window that only begins inside the tensor or its padding.
struct ceil_mode {};
/// An average pooling leaves padding out of its divisor.
struct exclude_padding {};
/// The divisor of an average pooling, whatever the window holds.
template <index_t By>
struct divisor {};

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

/// What the options of a layer say; `weights.why` is the first thing that does not fit.
struct layer_options {
  static_vector<sliding, 8> kernels;
  bool has_stride = false;
  contraction weights;
  pooling pool;
};

// One value for all dimensions, or one each; `at(i)` is the i-th.
template <index_t... Values>
struct values {
  static constexpr int count = sizeof...(Values);
  static constexpr index_t at(int i) {
    const index_t all[]{Values..., 0};
    return all[count == 1 ? 0 : i];
  }
  static constexpr bool fit(layer_options& o, int each) {
    const int wanted = o.kernels.count * each;
    if (count == 1 || count == wanted) return true;
    if (o.weights.why.ok()) o.weights.why = refusal{code::option_of_other_dimensions, wanted, count};
    return false;
  }
};

// The kernel is read before all other options, whatever their order.
template <class Option>
struct option {
  static constexpr void kernel_of(layer_options& o) { o.weights.why = refusal{code::option_unknown}; }
  static constexpr void apply(layer_options&) {}
};
template <index_t... K>
struct option<kernel<K...>> {
  static constexpr void kernel_of(layer_options& o) { (o.kernels.push({K, 1, 0, 0, 1}), ...); }
  static constexpr void apply(layer_options&) {}
};
struct no_kernel {
  static constexpr void kernel_of(layer_options&) {}
};
template <index_t... S>
struct option<stride<S...>> : no_kernel {
  static constexpr void apply(layer_options& o) {
    if (!values<S...>::fit(o, 1)) return;
    for (int i = 0; i < o.kernels.count; ++i) o.kernels[i].stride = values<S...>::at(i);
    o.has_stride = true;
  }
};
template <index_t... P>
struct option<padding<P...>> : no_kernel {
  static constexpr void apply(layer_options& o) {
    if (!values<P...>::fit(o, 1)) return;
    for (int i = 0; i < o.kernels.count; ++i) o.kernels[i].before = o.kernels[i].after = values<P...>::at(i);
  }
};
template <index_t... P>
struct option<padding_at<P...>> : no_kernel {
  static constexpr void apply(layer_options& o) {
    if (!values<P...>::fit(o, 2)) return;
    for (int i = 0; i < o.kernels.count; ++i) {
      o.kernels[i].before = values<P...>::at(2 * i);
      o.kernels[i].after = values<P...>::at(2 * i + 1);
    }
  }
};
template <index_t... D>
struct option<dilation<D...>> : no_kernel {
  static constexpr void apply(layer_options& o) {
    if (!values<D...>::fit(o, 1)) return;
    for (int i = 0; i < o.kernels.count; ++i) o.kernels[i].dilation = values<D...>::at(i);
  }
};
template <boundary Edge>
struct option<padding_mode<Edge>> : no_kernel {
  static constexpr void apply(layer_options& o) {
    for (sliding& s : o.kernels) s.edge = Edge;
  }
};
template <index_t Count>
struct option<groups<Count>> : no_kernel {
  static constexpr void apply(layer_options& o) { o.weights.groups = Count; }
};
template <>
struct option<ceil_mode> : no_kernel {
  static constexpr void apply(layer_options& o) { o.pool.ceil_mode = true; }
};
template <>
struct option<exclude_padding> : no_kernel {
  static constexpr void apply(layer_options& o) { o.pool.counts_padding = false; }
};
template <index_t By>
struct option<divisor<By>> : no_kernel {
  static constexpr void apply(layer_options& o) { o.pool.divisor = By; }
};
template <>
struct option<no_bias> : no_kernel {
  static constexpr void apply(layer_options& o) { o.weights.bias = false; }
};
template <class... Axes>
struct option<cut_out<Axes...>> : no_kernel {
  static constexpr void apply(layer_options& o) {
    o.weights.chosen = true;
    (o.weights.cut_out.push(short_name_of<bare_axis<Axes>>()), ...);
  }
};
template <class... Axes>
struct option<cut_in<Axes...>> : no_kernel {
  static constexpr void apply(layer_options& o) {
    o.weights.chosen = true;
    (o.weights.cut_in.push(short_name_of<bare_axis<Axes>>()), ...);
  }
};
template <class P>
struct option<output_as<P>> : no_kernel {
  static constexpr void apply(layer_options& o) {
    if constexpr (PartitionType<P>) {
      o.weights.has_output = true;
      o.weights.output = layout_of_partition<P>;
      if (o.weights.why.ok()) o.weights.why = partition_check<P>::value;
    } else if (o.weights.why.ok()) {
      o.weights.why = refusal{code::not_a_partition};
    }
  }
};

template <class... Options>
constexpr layer_options read_options() {
  layer_options o;
  (option<Options>::kernel_of(o), ...);
  (option<Options>::apply(o), ...);
  return o;
}

// A pooling steps by its kernel unless told otherwise.
template <class... Options>
constexpr pooling read_pooling(pooling::kind what) {
  layer_options o = read_options<Options...>();
  if (!o.has_stride)
    for (sliding& s : o.kernels) s.stride = s.kernel;
  pooling p = o.pool;
  p.what = what;
  p.kernels = o.kernels;
  p.why = o.weights.why;
  return p;
}

// The mesh that options name, in `output_as`.
template <class... Options>
struct mesh_of_options {};
template <class Option, class... Rest>
struct mesh_of_options<Option, Rest...> : mesh_of_options<Rest...> {};
template <PartitionType P, class... Rest>
struct mesh_of_options<output_as<P>, Rest...> {
  using mesh_type = typename P::mesh_type;
};

}  // namespace detail

}  // namespace tessera
