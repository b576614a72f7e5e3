#pragma once

#include <tessera/operation/layer/layers.hpp>
#include <tessera/operation/layer/lookup.hpp>

#include <limits>

namespace tessera {

namespace detail {

/// One number for each row of a weight, on all who have a part of the row.
constexpr layout one_a_row(layout w, const axis_placement& features) {
  w.dims.resize(1);
  for (axis_placement& r : w.placements) {
    if (r.kind == placement::cut && r.dimension == 1) r = features;
    else if (r.kind == placement::replicate) r = {placement::invariant};
  }
  return w;
}

/// How often all workers look up each row, and the norms of rows that are cut. Both are numbers a row, where the
/// gradient has `features` of them.
constexpr void exchange_counts(layer_plan& p, const layout& indices, const layout& weight, const lookup& layer) {
  const layout rows = one_a_row(weight, {placement::invariant});
  signature s;
  s.kind = linearity::additive;
  s.operands.push(letters_of(indices.dims.count));
  s.result = named("R");
  static_vector<operand, 4> operands = no_items<operand, 4>;
  operands.push({indices, true});
  inferred mine = infer(s.added('R', layer.rows), operands);
  for (axis_placement& r : mine.layout.placements)
    if (r.kind == placement::replicate) r = {placement::invariant};
  p.why = first_of(p.why, mine.why);
  if (!p.why.ok()) return;
  p.add_exchange(mine.layout, rows, element::int64, false);
  if (!layer.max_norm.is_set()) return;
  const bool largest = layer.norm_type == std::numeric_limits<double>::infinity();
  p.add_exchange(one_a_row(weight, partial_by(largest ? combine::max : combine::sum)), rows, element::float64, false);
}

}  // namespace detail

namespace engine {

/// Plans a look-up: (raw → output) ∘ rows of w ∘ (indices → used), w[rows, features] cut by rows, features or neither.
///
/// Where rows are cut each worker looks up those that it has, and the results are terms of a sum. Unless it is said
/// otherwise a result lies as the indices do, its features cut as the weight's. Where rows are counted the counts of
/// all workers are summed, and norms of cut rows too.
constexpr layer_plan plan_of(const lookup& layer, const tensor_value& x) {
  if (const refusal why = first_of(layer.why, layer.check(), check_gradient(layer.element)); !why.ok())
    return refused_layer(why);
  if (x.element != element::int64 && x.element != element::int32)
    return refused_layer(refusal{code::indices_wanted, static_cast<int>(x.element)});
  const int features = x.layout.dims.count;
  if (features == max_dimensions) return refused_layer(refusal{code::too_many, features + 1});
  layer_plan p = plan_elementwise(x.layout);  // a term of an index is none
  if (!p.why.ok()) return p;
  unsigned taken = 0;
  const auto cut_out = detail::found(x.layout.mesh, layer.cut_out, taken, p.why);
  const auto cut_in = detail::found(x.layout.mesh, layer.cut_in, taken, p.why);
  if (!p.why.ok()) return p;

  layout used = x.layout;
  for (const auto* axes : {&cut_out, &cut_in})
    for (int a : *axes)
      if (used.placements[a].kind == placement::cut) used.set_placement(a, {});
  parameter_value weight;
  weight.name = "weight";
  weight.used = weight_for(used, {layer.rows, layer.features});
  for (int a : cut_in) weight.used.cut_by(0, a);
  for (int a : cut_out) weight.used.cut_by(1, a);
  weight.stored = stored_form(weight.used);
  weight.initial = layer.padding.is_set()
                       ? init::with_zeros(init::normal(), layer.padding_row(), layer.padding_row() + 1)
                       : init::normal();
  weight.frozen = layer.frozen;
  weight.rewritten = layer.max_norm.is_set();
  weight.has_element = true;
  weight.element = layer.element;

  signature s;
  s.kind = linearity::multilinear;
  s.operands.push(letters_of(features));
  s.operands.push(named("RF"));
  s.result = s.operands[0];
  s.result.push('F');
  static_vector<operand, 4> operands = no_items<operand, 4>;
  operands.push({used, true});
  operands.push({weight.used, false});
  const inferred raw = infer(s, operands);
  layout given = layer.output;
  if (!layer.has_output) {
    given = x.layout;
    given.dims.push(raw.layout.dims[features]);
    for (int a : cut_out) {
      given.set_placement(a, {});
      given.cut_by(features, a);
    }
  }
  if (p.why = first_of(raw.why, check(weight.used)); !p.why.ok()) return p;
  if (given.dims.count != features + 1)
    return refused_layer(refusal{code::wrong_number_of_dimensions, given.dims.count, features + 1});
  for (int d = 0; d <= features; ++d) {
    given.dims[d].extent = raw.layout.dims[d].extent;
    given.dims[d].tag = raw.layout.dims[d].tag;
  }
  p = {};
  p.why = first_of(check(given), check_change(x.layout, used), check_change(raw.layout, given));
  p.add_input(x.layout, used);
  p.add_output(raw.layout, given, layer.element);
  p.round_terms();  // all but one are zeros
  p.add_parameter(weight);
  p.saves = saved_tensors::saving(1);
  if (layer.counts()) detail::exchange_counts(p, used, weight.used, layer);
  if (layer.by_frequency) {
    p.saves.returning = 1;
    p.make(used, layer.element);
  }
  if (weight.used.levels(0) > 0) {  // which indices are of other workers' rows
    p.saves.returning = 1;
    p.make(used, x.element);
    p.make(used, element::boolean);
  }
  return p;
}

}  // namespace engine

/// Before they are looked up rows of a larger norm than this are made as long as it, in place: `max_norm<3, 2>` is 1.5.
template <index_t Numerator, index_t Denominator = 1>
struct max_norm {};
/// The p of that norm, 2 unless said; `norm_type<1, 0>` is infinity.
template <index_t Numerator, index_t Denominator = 1>
struct norm_type {};
/// The gradient of a row is divided by how often all workers looked it up.
struct scale_grad_by_freq {};
/// The weights have no gradient.
struct frozen {};
/// Asks for gradients of some rows alone, which is refused.
struct sparse {};

template <index_t Numerator, index_t Denominator>
inline constexpr kind engine::kind_of<max_norm<Numerator, Denominator>> = kind::option;
template <index_t Numerator, index_t Denominator>
inline constexpr kind engine::kind_of<norm_type<Numerator, Denominator>> = kind::option;
template <>
inline constexpr kind engine::kind_of<scale_grad_by_freq> = kind::option;
template <>
inline constexpr kind engine::kind_of<frozen> = kind::option;
template <>
inline constexpr kind engine::kind_of<sparse> = kind::option;

namespace detail {

template <index_t Numerator, index_t Denominator>
struct option<max_norm<Numerator, Denominator>> : option_of_kind<option_kind::max_norm> {
  static constexpr void apply(layer_options& o) { o.look.max_norm = fraction(Numerator, Denominator, o.weights.why); }
};
template <index_t Numerator, index_t Denominator>
struct option<norm_type<Numerator, Denominator>> : option_of_kind<option_kind::norm_type> {
  static constexpr void apply(layer_options& o) {
    const bool infinite = Numerator > 0 && Denominator == 0;
    o.look.norm_type =
        infinite ? std::numeric_limits<double>::infinity() : fraction(Numerator, Denominator, o.weights.why);
  }
};
template <>
struct option<scale_grad_by_freq> : option_of_kind<option_kind::by_frequency> {
  static constexpr void apply(layer_options& o) { o.look.by_frequency = true; }
};
template <>
struct option<frozen> : option_of_kind<option_kind::frozen> {
  static constexpr void apply(layer_options& o) { o.look.frozen = true; }
};
template <>
struct option<sparse> : option_of_kind<option_kind::sparse> {
  static constexpr void apply(layer_options& o) { o.look.sparse = true; }
};

}  // namespace detail

namespace nn {

/// y[…, Features] = w[x[…]], a row of w[Rows, Features] for each index of an integer tensor.
///
/// Options: `cut_out<axes…>` cuts the features, `cut_in<axes…>` the rows, `output_as<partition>`, `weights_as<element>`
/// (float unless said), `padding_idx<index>`, `max_norm<n, d>` with `norm_type<n, d>`, `scale_grad_by_freq`, `frozen`.
template <index_t Rows, index_t Features, class... Options>
struct embedding : engine::described_layer<embedding<Rows, Features, Options...>>,
                   tessera::detail::mesh_of_options<Options...> {
  static constexpr const char* name = "embedding";
  static constexpr engine::option_kinds takes{engine::option_kind::cut_out,     engine::option_kind::cut_in,
                                              engine::option_kind::output,      engine::option_kind::weights,
                                              engine::option_kind::padding_idx, engine::option_kind::max_norm,
                                              engine::option_kind::norm_type,   engine::option_kind::by_frequency,
                                              engine::option_kind::frozen,      engine::option_kind::sparse};
  static constexpr engine::lookup description() {
    const tessera::detail::layer_options o = tessera::detail::read_options<Options...>(takes);
    const engine::contraction& c = o.weights;
    engine::lookup l = o.look;
    l.rows = Rows;
    l.features = Features;
    if (c.has_element) l.element = c.element;
    l.cut_out = c.cut_out;
    l.cut_in = c.cut_in;
    l.has_output = c.has_output;
    l.output = c.output;
    l.why = c.why;
    return l;
  }
};

}  // namespace nn

template <index_t Rows, index_t Features, class... Options>
inline constexpr kind engine::kind_of<nn::embedding<Rows, Features, Options...>> = kind::layer;

}  // namespace tessera
