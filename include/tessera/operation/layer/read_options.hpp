#pragma once

#include <tessera/operation/layer/layer_options.hpp>
#include <tessera/operation/layer/option_kinds.hpp>
#include <tessera/operation/layer/options.hpp>

namespace tessera {

namespace detail {

// The kernel is read before all other options, whatever their order.
template <option_kind Kind>
struct option_of_kind {
  static constexpr option_kind is = Kind;
  static constexpr void kernel_of(layer_options&) {}
  static constexpr void apply(layer_options&) {}
};
template <class Option>
struct option : option_of_kind<option_kind::nothing> {};
template <index_t... K>
struct option<kernel<K...>> : option_of_kind<option_kind::kernel> {
  static constexpr void kernel_of(layer_options& o) {
    constexpr int count = sizeof...(K);
    if (count > 3) o.weights.why = refusal{code::wrong_kernel, count};
    else (o.kernels.push({K, 1, 0, 0, 1}), ...);
  }
};
template <index_t... S>
struct option<stride<S...>> : option_of_kind<option_kind::stride> {
  static constexpr void apply(layer_options& o) {
    if (!values<S...>::fit(o, 1)) return;
    for (int i = 0; i < o.kernels.count; ++i) o.kernels[i].stride = values<S...>::at(i);
    o.has_stride = true;
  }
};
template <index_t... P>
struct option<padding<P...>> : option_of_kind<option_kind::padding> {
  static constexpr void apply(layer_options& o) {
    if (!values<P...>::fit(o, 1)) return;
    for (int i = 0; i < o.kernels.count; ++i) o.kernels[i].before = o.kernels[i].after = values<P...>::at(i);
  }
};
template <index_t... P>
struct option<padding_at<P...>> : option_of_kind<option_kind::padding> {
  static constexpr void apply(layer_options& o) {
    if (!values<P...>::fit(o, 2)) return;
    for (int i = 0; i < o.kernels.count; ++i) {
      o.kernels[i].before = values<P...>::at(2 * i);
      o.kernels[i].after = values<P...>::at(2 * i + 1);
    }
  }
};
template <index_t... D>
struct option<dilation<D...>> : option_of_kind<option_kind::dilation> {
  static constexpr void apply(layer_options& o) {
    if (!values<D...>::fit(o, 1)) return;
    for (int i = 0; i < o.kernels.count; ++i) o.kernels[i].dilation = values<D...>::at(i);
  }
};
template <>
struct option<padding_same> : option_of_kind<option_kind::padding_rule> {
  static constexpr void apply(layer_options& o) { o.same = true; }
};
template <>
struct option<padding_valid> : option_of_kind<option_kind::padding_rule> {};
template <index_t... Widths>
struct option<output_padding<Widths...>> : option_of_kind<option_kind::output_padding> {
  static constexpr void apply(layer_options& o) {
    if (!values<Widths...>::fit(o, 1)) return;
    for (int i = 0; i < o.kernels.count; ++i) o.weights.output_padding.push(values<Widths...>::at(i));
  }
};
template <index_t... Extents>
struct option<output_size<Extents...>> : option_of_kind<option_kind::output_padding> {
  static constexpr void apply(layer_options& o) {
    if (!values<Extents...>::fit(o, 1)) return;
    for (int i = 0; i < o.kernels.count; ++i) o.weights.output_size.push(values<Extents...>::at(i));
  }
};
template <boundary... Edges>
struct option<padding_mode<Edges...>> : option_of_kind<option_kind::padding_mode> {
  static constexpr void apply(layer_options& o) {
    using edges = values<static_cast<index_t>(Edges)...>;
    if (!edges::fit(o, 1)) return;
    for (int i = 0; i < o.kernels.count; ++i) o.kernels[i].edge = static_cast<boundary>(edges::at(i));
  }
};
template <index_t Count>
struct option<groups<Count>> : option_of_kind<option_kind::groups> {
  static constexpr void apply(layer_options& o) { o.weights.groups = Count; }
};
template <index_t... Times>
struct option<factor<Times...>> : option_of_kind<option_kind::factor> {
  static constexpr void apply(layer_options& o) {
    constexpr int count = sizeof...(Times);
    if (count > o.up.factors.capacity) o.weights.why = first_of(o.weights.why, refusal{code::wrong_kernel, count});
    else (o.up.factors.push(static_cast<double>(Times)), ...);
  }
};
template <index_t... Extents>
struct option<size<Extents...>> : option_of_kind<option_kind::factor> {
  static constexpr void apply(layer_options& o) {
    constexpr int count = sizeof...(Extents);
    if (count > o.up.sizes.capacity) o.weights.why = first_of(o.weights.why, refusal{code::wrong_kernel, count});
    else (o.up.sizes.push(Extents), ...);
  }
};
template <interpolation How>
struct option<mode<How>> : option_of_kind<option_kind::interpolation> {
  static constexpr void apply(layer_options& o) { o.up.mode = How; }
};
template <>
struct option<align_corners> : option_of_kind<option_kind::corners> {
  static constexpr void apply(layer_options& o) { o.up.align_corners = true; }
};
template <>
struct option<antialias> : option_of_kind<option_kind::antialias> {
  static constexpr void apply(layer_options& o) {
    o.weights.why = first_of(o.weights.why, refusal{code::antialias_not_there});
  }
};
template <>
struct option<ceil_mode> : option_of_kind<option_kind::ceil_mode> {
  static constexpr void apply(layer_options& o) { o.pool.ceil_mode = true; }
};
template <>
struct option<exclude_padding> : option_of_kind<option_kind::exclude_padding> {
  static constexpr void apply(layer_options& o) { o.pool.counts_padding = false; }
};
template <index_t By>
struct option<divisor<By>> : option_of_kind<option_kind::divisor> {
  static constexpr void apply(layer_options& o) {
    o.pool.divisor = By;
    if (By < 1) o.weights.why = first_of(o.weights.why, refusal{code::divisor_not_positive, By});
  }
};
template <>
struct option<no_bias> : option_of_kind<option_kind::bias> {
  static constexpr void apply(layer_options& o) { o.weights.bias = false; }
};
template <>
struct option<round_terms> : option_of_kind<option_kind::terms> {
  static constexpr void apply(layer_options& o) { o.weights.round_terms = true; }
};
template <index_t Index>
struct option<padding_idx<Index>> : option_of_kind<option_kind::padding_idx> {
  static constexpr void apply(layer_options& o) { o.look.padding = Index; }
};

template <>
struct option<causal> : option_of_kind<option_kind::causal> {
  static constexpr void apply(layer_options& o) { o.attends.causal = true; }
};
template <>
struct option<added_mask> : option_of_kind<option_kind::added_mask> {
  static constexpr void apply(layer_options& o) { o.attends.added_mask = true; }
};
template <index_t Rows>
struct option<streamed<Rows>> : option_of_kind<option_kind::streamed> {
  static constexpr void apply(layer_options& o) {
    o.attends.streamed = true;
    o.attends.rows = Rows;
  }
};
template <index_t Before, index_t After>
struct option<sliding_window<Before, After>> : option_of_kind<option_kind::sliding_window> {
  static constexpr void apply(layer_options& o) {
    o.attends.slides = true;
    o.attends.before = Before;
    o.attends.after = After;
  }
};

// The axes that an option names.
template <class... Axes>
constexpr void name_axes(layer_options& o, static_vector<text, max_axes>& names) {
  constexpr int count = sizeof...(Axes);
  const refusal many = count > max_axes ? refusal{code::too_many, count} : refusal{};
  o.weights.cut_is_set = true;
  o.weights.why = first_of(o.weights.why, check_axes<kind::option, Axes...>(), many);
  if (many.ok()) (names.push(short_name_of<bare_axis<Axes>>()), ...);
}
template <class... Axes>
struct option<over_heads<Axes...>> : option_of_kind<option_kind::over_heads> {
  static constexpr void apply(layer_options& o) { name_axes<Axes...>(o, o.attends.over); }
};
template <class... Axes>
struct option<fewest_bytes<Axes...>> : option_of_kind<option_kind::over_heads> {
  static constexpr void apply(layer_options& o) {
    name_axes<Axes...>(o, o.attends.over);
    o.attends.streamed = o.attends.chooses = true;
  }
};
template <class... Axes>
struct option<cut_out<Axes...>> : option_of_kind<option_kind::cut_out> {
  static constexpr void apply(layer_options& o) { name_axes<Axes...>(o, o.weights.cut_out); }
};
template <index_t Grain, class... Axes>
struct option<cut_out<grains<Grain, Axes...>>> : option_of_kind<option_kind::cut_out> {
  static constexpr void apply(layer_options& o) {
    name_axes<Axes...>(o, o.weights.cut_out);
    o.weights.grain_out = Grain;
    if (Grain < 1) o.weights.why = first_of(o.weights.why, refusal{code::grain_not_positive, 0, Grain});
  }
};
template <class... Axes>
struct option<cut_in<Axes...>> : option_of_kind<option_kind::cut_in> {
  static constexpr void apply(layer_options& o) { name_axes<Axes...>(o, o.weights.cut_in); }
};
template <class P>
struct option<output_as<P>> : option_of_kind<option_kind::output> {
  static constexpr void apply(layer_options& o) {
    if constexpr (PartitionType<P>) {
      o.weights.has_output = true;
      o.weights.output = partition_draft<P>::value.value;
      o.weights.why = first_of(o.weights.why, partition_check<P>::value);
    } else {
      o.weights.why = first_of(o.weights.why, check_kinds<kind::option, kind::partition, P>());
    }
  }
};

template <class E>
struct option<weights_as<E>> : option_of_kind<option_kind::weights> {
  static constexpr void apply(layer_options& o) {
    o.weights.has_element = true;
    o.weights.element = element_of<E>;
    o.weights.why =
        first_of(o.weights.why, check_kinds<kind::option, kind::element, E>(), check_gradient(element_of<E>));
  }
};

// What an option says is one thing with what those say that lead to the same subject.
constexpr option_kind subject_of(option_kind t) { return t == option_kind::padding_rule ? option_kind::padding : t; }

// Refuses an option that the layer does not take, and a second one on the same subject.
template <class... Options>
constexpr refusal check_options(const option_kinds& taken) {
  const option_kind given[]{option<Options>::is..., option_kind::nothing};
  for (int i = 0; i < static_cast<int>(sizeof...(Options)); ++i) {
    if (!taken.takes(given[i])) return refusal{code::option_not_taken, i};
    for (int before = 0; before < i; ++before)
      if (subject_of(given[before]) == subject_of(given[i])) return refusal{code::option_given_twice, before, i};
  }
  return {};
}

// What options say to a layer that takes these; `o` is what it has before they speak.
template <class... Options>
constexpr layer_options read_options(const option_kinds& taken, layer_options o = layer_options()) {
  o.weights.why = check_options<Options...>(taken);
  if (!o.weights.why.ok()) return o;
  (option<Options>::kernel_of(o), ...);
  if (taken.takes(option_kind::kernel) && o.kernels.empty())
    o.weights.why = first_of(o.weights.why, refusal{code::wrong_kernel, 0});
  if (o.weights.why.ok()) (option<Options>::apply(o), ...);
  return o;
}

// A convolution with what options say of it.
template <class... Options>
constexpr contraction read_convolution(const option_kinds& taken, index_t out) {
  const layer_options o = read_options<Options...>(taken);
  contraction c = o.weights;
  c.feature = 1;
  c.out = out;
  c.kernels = o.kernels;
  if (o.same) c.keep_extents();
  return c;
}

// A pooling steps by its kernel unless told otherwise.
template <class... Options>
constexpr pooling read_pooling(const option_kinds& taken, pooling::kind kind) {
  layer_options o = read_options<Options...>(taken);
  if (!o.has_stride)
    for (sliding& s : o.kernels) s.stride = s.kernel;
  pooling p = o.pool;
  p.is = kind;
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
