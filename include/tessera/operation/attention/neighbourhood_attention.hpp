#pragma once

#include <tessera/operation/attention/attention_plan.hpp>
#include <tessera/operation/layer/value_options.hpp>

namespace tessera {

namespace engine {

/// Attention of each query to a window of keys around it.
struct neighbourhood_description {
  static_vector<index_t, 3> window = no_items<index_t, 3>;  ///< how many keys, along each dimension of space
  index_t heads = 0;  ///< into which the features of all operands are still to be split; 0: they are heads already
  refusal why = {};   ///< what does not fit in the options themselves

  /// Which keys a query reads along the i-th dimension of space; at the edge those of the query that is furthest out.
  constexpr tessera::window needs(int i) const {
    const index_t around = window[i] / 2;
    return {1, -around, around, 1, 0, 0, boundary::inward};
  }
  /// The first dimension of space, of operands of so many dimensions that are queries.
  constexpr int first(int dims) const { return dims - (heads > 0 ? 1 : 3) - window.count; }

  constexpr refusal check() const {
    if (!why.ok()) return why;
    if (window.empty()) return refusal{code::wrong_kernel, 0};
    for (int i = 0; i < window.count; ++i) {
      if (window[i] < 1) return refusal{code::window_not_positive, i, window[i], 1, 1};
      if (window[i] % 2 == 0) return refusal{code::window_even, i, window[i]};
    }
    return {};
  }
  constexpr refusal check_space(int operand, int d, index_t keys, const dimension& dim) const {
    if (dim.extent == dynamic) return refusal{code::windows_need_extent, d};
    if (keys > dim.extent) return refusal{code::kernel_too_wide, d, dim.extent, 0, keys};
    if (dim.zigzag) return refusal{code::interval_wanted, d};
    return dim.kind == cover::tiled ? refusal{} : refusal{code::window_without_halo, operand, d};
  }
};

}  // namespace engine

namespace detail {

// The memory of its taps; `heads` is the result before its heads are joined. A weight of each key that a query sees is
// kept. Queries whose windows end at an edge are apart from others, and their results are put side by side. Of the most
// that are together there are scores twice, or scores and products of one tap. Backward has gradients of the operands
// beside terms of them. Half types are multiplied in float, in copies.
constexpr void hold_windows_of_keys(layer_plan& p, const neighbourhood_description& layer, layout heads, element e) {
  const bool half = bytes_of(e) < bytes_of(element::float32);
  const element wide = half ? element::float32 : e;
  const layout &q = p.used(0), &v = p.used(2);
  index_t seen = 1, all = 1, most = 1;
  for (int i = 0; i < layer.window.count; ++i) {
    const int d = layer.first(q.dims.count) + i;
    const index_t n = q.dims[d].extent, around = layer.window[i] / 2;
    const bool together = n == layer.window[i] || q.levels(d) > 0;
    seen = capped_product(seen, layer.window[i]);
    all = capped_product(all, larger(1, n));
    most = capped_product(most, together ? larger(1, n) : larger(around + 1, n - 2 * around - 2));
  }
  const index_t of_query = q.dims[q.dims.count - 1].extent, of_value = v.dims[v.dims.count - 1].extent;
  const auto share = [&](index_t of) { return ceil_divide(capped_product(of, most), all); };
  const index_t product = share(larger(of_query, of_value)), scores = share(seen);
  heads.dims[heads.dims.count - 1].extent = seen;
  p.remember(heads, wide);
  for (int o = 0; o < 3 && half; ++o) p.make(p.used(o), element::float32);
  p.saves = saved_tensors::saving(half ? 0 : 7);
  heads.dims[heads.dims.count - 1].extent = larger(of_value, capped_sum(scores, larger(scores, product)));
  p.take(heads, wide);
  const layout& term = of_query > of_value ? q : p.raw();
  p.take_back(term, e, half ? 24 : 7);
  p.add_product({p.used_extents()}, seen);
  p.add_product({p.raw_extents()}, seen);
}

}  // namespace detail

namespace engine {

/// Plans it of queries [n…, s…, g, r, d], keys [n…, s…, g, d] and values [n…, s…, g, e], with result [n…, s…, g · r ·
/// e]: attention of windows ∘ (blocks → what windows of the own queries read). Space, samples and heads may be cut, of
/// all operands alike.
constexpr layer_plan plan_of(const neighbourhood_description& layer, const tensor_value& q, const tensor_value& k,
                             const tensor_value& v) {
  if (const refusal r = layer.check(); !r.ok()) return refused_layer(r);
  const int first = layer.first(q.layout.dims.count), space = layer.window.count;
  if (first < 0)
    return refused_layer(refusal{code::layer_takes_other_dimensions, q.layout.dims.count - first, q.layout.dims.count});
  if (is_complex(q.element) || !has_cotangent(q.element))
    return refused_layer(refusal{code::no_function_of_element, static_cast<int>(q.element)});
  const tensor_value* const given[]{&q, &k, &v};
  static_vector<operand, 4> operands = no_items<operand, 4>;
  layer_plan p;
  for (int o = 0; o < 3; ++o) {
    layout x = given[o]->layout;
    const int dims = q.layout.dims.count - (o > 0 && layer.heads == 0 ? 1 : 0);
    if (x.dims.count != dims) return refused_layer(refusal{code::operand_of_other_dimensions, o, dims, x.dims.count});
    if (given[o]->element != q.element)
      return refused_layer(refusal{code::wrong_element, q.element, given[o]->element});
    operands.push({x, false});
    for (int i = 0; i < space; ++i) {
      dimension& dim = x.dims[first + i];
      if (const refusal r = layer.check_space(o, first + i, layer.window[i], dim); !r.ok()) return refused_layer(r);
      if (o > 0 && x.levels(first + i) > 0) dim.hold(layer.needs(i), dim.extent, true);
    }
    p.add_input(given[o]->layout, x);
    if (layer.heads > 0)
      if (const refusal r = detail::split_heads(operands[o].layout, o, layer.heads); !r.ok()) return refused_layer(r);
  }
  const int batch = first + space;
  signature s, join;
  for (const char* own : {"GRD", "GD", "GE", "GRE"}) {
    letters l = letters_of(batch);
    for (char letter : named(own)) l.push(letter);
    if (s.operands.count < 3) s.operands.push(l);
    else s.result = l;
  }
  const inferred y = infer(s.whole("DRE"), operands);
  if (!y.why.ok()) return refused_layer(y.why);
  join.kind = linearity::additive;
  join.operands.push(s.result);
  join.result = letters_of(batch);
  join.result.push('H');
  const layer_plan joined = detail::local(y.layout, join.merged("GRE", 'H'));
  p.add_output(joined.output());
  p.why = joined.why;
  detail::hold_windows_of_keys(p, layer, y.layout, q.element);
  return p;
}

}  // namespace engine

namespace nn {

/// softmax(q kᵀ / √d) v of the queries, keys and values that `heads` gives, where a query sees the window of keys
/// around it.
///
/// `kernel<7, 7>` is how many keys it sees along each of the last 1 to 3 dimensions before the heads. At an edge the
/// window moves inside, so that every query sees as many (Hassani et al., Neighborhood Attention Transformer, 2023).
template <class... Options>
struct neighbourhood_attention : engine::described_layer<neighbourhood_attention<Options...>> {
  static constexpr const char* name = "neighbourhood_attention";
  static constexpr engine::option_kinds takes{engine::option_kind::kernel};
  static constexpr engine::neighbourhood_description description() {
    const tessera::detail::layer_options o = tessera::detail::read_options<Options...>(takes);
    engine::neighbourhood_description d;
    d.why = o.weights.why;
    for (const sliding& s : o.kernels) d.window.push(s.kernel);
    return d;
  }
  static constexpr bool only_here = true;  ///< a function of the serial model: it takes no number in its keys
  static constexpr layer_plan plan(const tensor_value& q, const tensor_value& k, const tensor_value& v) {
    return plan_of(description(), q, k, v);
  }
};

/// The same as a value, of which a flow of a program takes flows.
struct neighbourhood_attention_layer {
  static constexpr const char* name = "neighbourhood_attention";
  static constexpr bool only_here = true;
  engine::per_dimension kernel{};
  index_t heads = 0;  ///< into which features are split; 0: they are heads already

  constexpr engine::neighbourhood_description description() const {
    engine::neighbourhood_description d;
    d.heads = heads;
    if (heads < 0) d.why = refusal{code::heads_do_not_divide, heads, heads};
    if (kernel.count() > 3) d.why = refusal{code::wrong_kernel, kernel.count()};
    for (int i = 0; i < kernel.count() && d.why.ok(); ++i) d.window.push(kernel[i]);
    return d;
  }
  constexpr layer_plan plan(const tensor_value& q, const tensor_value& k, const tensor_value& v) const {
    return plan_of(description(), q, k, v);
  }
  template <engine::DynamicFlow First, engine::DynamicFlow... Rest>
  auto operator()(const First& first, const Rest&... rest) const {
    return tessera::detail::added(*this, first, rest...);
  }
};

}  // namespace nn

template <class... Options>
inline constexpr kind engine::kind_of<nn::neighbourhood_attention<Options...>> = kind::layer;
template <>
inline constexpr kind engine::kind_of<nn::neighbourhood_attention_layer> = kind::layer;

}  // namespace tessera
