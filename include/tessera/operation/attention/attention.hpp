#pragma once

#include <tessera/operation/attention/attention_plan.hpp>
#include <tessera/operation/layer/value_options.hpp>

namespace tessera {

namespace engine {

/// Scaled dot product attention: softmax(q kᵀ / √d) v for each head.
struct attention_description {
  attention_form form;
  refusal why = {};  ///< what does not fit in the options themselves
};

/// Plans attention of queries [n…, t, g, r, d] on keys [n…, s, g, d] and values [n…, s, g, e], with result [n…, t, g ·
/// r · e]. A cut of the heads g becomes one in grains. Samples and heads may be cut, alike. Features that are still to
/// be split are g · d of queries, too.
///
/// The sequence is whole unless keys and values are streamed: then t and s may be cut. A mask [n…, t, s] of booleans is
/// true of what a query does not see. One of numbers is added to scores, if the form says so. Cumulative lengths [m +
/// 1] say where each of m sequences begins, and where the last one ends: a query sees keys of its own alone.
constexpr layer_plan plan_of(const attention_description& layer, const tensor_value& q, const tensor_value& k,
                             const tensor_value& v, const tensor_value* more) {
  if (!layer.why.ok()) return refused_layer(layer.why);
  attention_form streaming = layer.form;
  streaming.over.resize(0);
  const bool over_heads = !layer.form.chooses || detail::chooses_heads(layer.form, streaming, q, k, v, more);
  return detail::attention_as(over_heads ? layer.form : streaming, q, k, v, more);
}
constexpr layer_plan plan_of(const attention_description& layer, const tensor_value& q, const tensor_value& k,
                             const tensor_value& v) {
  return plan_of(layer, q, k, v, nullptr);
}
constexpr layer_plan plan_of(const attention_description& layer, const tensor_value& q, const tensor_value& k,
                             const tensor_value& v, const tensor_value& more) {
  return plan_of(layer, q, k, v, &more);
}

}  // namespace engine

namespace nn {

/// softmax(q kᵀ / √d) v of the queries, keys and values that `heads` gives; the heads are one dimension of the result.
///
/// A fourth operand of booleans of queries and keys is true of what a query does not see. With `added_mask` it is of
/// numbers that are added to scores. One of int64 is the cumulative lengths of packed sequences. A query that sees
/// nothing gives 0. Weights are dropped in training as `dropout` drops, the same on any partition. Options: `causal`,
/// `added_mask`, `sliding_window`, `streamed`, `over_heads` or `fewest_bytes`, `probability<n, d>` (0).
template <class... Options>
struct attention : engine::described_layer<attention<Options...>> {
  static constexpr const char* name = "attention";
  static constexpr engine::option_kinds takes{engine::option_kind::causal,         engine::option_kind::added_mask,
                                              engine::option_kind::sliding_window, engine::option_kind::streamed,
                                              engine::option_kind::over_heads,     engine::option_kind::probability};
  static constexpr engine::attention_description description() {
    tessera::detail::layer_options o = tessera::detail::read_options<Options...>(takes);
    o.attends.dropped = o.drop.probability;
    return {o.attends, tessera::detail::first_of(o.weights.why, o.attends.check())};
  }
  /// A function of the serial model takes no number in its keys; one that draws has a state.
  static constexpr bool only_here() { return description().form.dropped == 0; }
  static constexpr layer_plan plan(const tensor_value& q, const tensor_value& k, const tensor_value& v) {
    return plan_of(description(), q, k, v);
  }
  static constexpr layer_plan plan(const tensor_value& q, const tensor_value& k, const tensor_value& v,
                                   const tensor_value& more) {
    return plan_of(description(), q, k, v, more);
  }
};

/// `attention` as a value, of which a flow of a program takes flows: `attention_layer{.causal = true}(q, k, v)`.
struct attention_layer {
  static constexpr const char* name = "attention";
  bool causal = false;
  bool streamed = false;
  index_t rows = 0;
  index_t heads = 0;  ///< into which features are split; 0: they are heads already
  bool slides = false;
  index_t before = 0;  ///< where it slides, so many keys before a query are seen
  index_t after = 0;
  engine::axis_names over = {};  ///< those that cut the sequence before and behind it, and the heads in it
  double probability = 0;        ///< with which a weight is dropped in training
  bool fewest_bytes = false;     ///< over these axes, or streamed along them, too
  bool added_mask = false;       ///< the mask is of numbers that are added to scores; else of booleans

  constexpr engine::attention_description description() const {
    const engine::attention_form form{.causal = causal,
                                      .streamed = streamed || fewest_bytes,
                                      .rows = rows,
                                      .heads = heads,
                                      .slides = slides,
                                      .before = before,
                                      .after = after,
                                      .added_mask = added_mask,
                                      .dropped = probability,
                                      .over = over.list(),
                                      .chooses = fewest_bytes};
    return {form, form.check()};
  }
  constexpr bool only_here() const { return probability == 0; }
  constexpr layer_plan plan(const tensor_value& q, const tensor_value& k, const tensor_value& v) const {
    return plan_of(description(), q, k, v);
  }
  constexpr layer_plan plan(const tensor_value& q, const tensor_value& k, const tensor_value& v,
                            const tensor_value& more) const {
    return plan_of(description(), q, k, v, more);
  }
  template <engine::DynamicFlow First, engine::DynamicFlow... Rest>
  auto operator()(const First& first, const Rest&... rest) const {
    return tessera::detail::added(*this, first, rest...);
  }
};

}  // namespace nn

template <class... Options>
inline constexpr kind engine::kind_of<nn::attention<Options...>> = kind::layer;
template <>
inline constexpr kind engine::kind_of<nn::attention_layer> = kind::layer;

}  // namespace tessera
