#pragma once

#include <tessera/operation/layer/layers.hpp>

namespace tessera {

namespace engine {

/// Scaled dot product attention: softmax(q kᵀ / √d) v for each head.
struct attention_description {
  bool causal = false;  ///< a query sees the keys up to its own place
  refusal why = {};     ///< what does not fit in the options themselves
};

}  // namespace engine

namespace detail {

// The memory of LibTorch's fused kernel: its operands and result, and a number for each query. Keys and values are
// copied out for each of their queries. A gradient that is differentiated reads the same. `heads` is the result before
// its heads are joined.
constexpr void hold_attention(layer_plan& p, layout heads, element e) {
  const int dims = heads.dims.count;
  heads.dims[dims - 1].extent = 1;
  p.make(heads, bytes_of(e) < bytes_of(element::float32) ? element::float32 : e);
  const bool grouped = heads.dims[dims - 2].extent != 1;
  p.saves = saved_tensors::saving(grouped ? 1 : 7, 0, 1);
  if (!grouped) return;
  for (int i = 0; i < 2; ++i) p.make(p.raw(), e);
  p.saves.returning = 2;
}

}  // namespace detail

namespace engine {

/// Plans attention of queries [n…, t, g, r, d] on keys [n…, s, g, d] and values [n…, s, g, e], with result [n…, t, g ·
/// r · e]. A cut of the heads g becomes one in grains. Samples and heads may be cut, alike; the sequence is whole.
constexpr layer_plan plan_of(const attention_description& layer, const tensor_value& q, const tensor_value& k,
                             const tensor_value& v) {
  if (!layer.why.ok()) return refused_layer(layer.why);
  const int batch = q.layout.dims.count - 4;
  if (batch < 0) return refused_layer(refusal{code::layer_takes_other_dimensions, 4, q.layout.dims.count});
  if (is_complex(q.element) || !has_cotangent(q.element))
    return refused_layer(refusal{code::no_function_of_element, static_cast<int>(q.element)});
  for (element e : {k.element, v.element})
    if (e != q.element) return refused_layer(refusal{code::wrong_element, q.element, e});
  signature s;
  for (const char* own : {"TGRD", "SGD", "SGE"}) {
    letters l = letters_of(batch);
    for (char letter : named(own)) l.push(letter);
    s.operands.push(l);
  }
  s.result = letters_of(batch);
  for (char letter : named("TGRE")) s.result.push(letter);
  s = s.whole("TSDRE");
  static_vector<operand, 4> operands = no_items<operand, 4>;
  for (const tensor_value* x : {&q, &k, &v}) operands.push({x->layout, false});
  const inferred y = infer(s, operands);
  if (!y.why.ok()) return refused_layer(y.why);
  if (layer.causal && q.layout.dims[batch].extent != k.layout.dims[batch].extent)
    return refused_layer(
        refusal{code::extents_differ, batch, q.layout.dims[batch].extent, k.layout.dims[batch].extent});

  signature join;
  join.kind = linearity::additive;
  join.operands.push(s.result);
  join.result = letters_of(batch);
  for (char letter : named("TH")) join.result.push(letter);
  const layer_plan joined = detail::local(y.layout, join.merged("GRE", 'H'));
  layer_plan p;
  for (const tensor_value* x : {&q, &k, &v}) p.add_input(x->layout);
  p.add_output(joined.output());
  p.why = joined.why;
  detail::hold_attention(p, y.layout, q.element);
  return p;
}

}  // namespace engine

namespace nn {

/// softmax(q kᵀ / √d) v of the queries, keys and values that `heads` gives; the heads are one dimension of the result.
///
/// Options: `causal`.
template <class... Options>
struct attention : engine::described_layer<attention<Options...>> {
  static constexpr const char* name = "attention";
  static constexpr engine::option_kinds takes{engine::option_kind::causal};
  static constexpr engine::attention_description description() {
    const tessera::detail::layer_options o = tessera::detail::read_options<Options...>(takes);
    return {o.causal, o.weights.why};
  }
  static constexpr bool only_here = true;  ///< a function of the serial model: it takes no number in its keys
  static constexpr layer_plan plan(const tensor_value& q, const tensor_value& k, const tensor_value& v) {
    return plan_of(description(), q, k, v);
  }
};

}  // namespace nn

template <class... Options>
inline constexpr kind engine::kind_of<nn::attention<Options...>> = kind::layer;

}  // namespace tessera
