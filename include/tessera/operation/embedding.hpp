#pragma once

#include <tessera/operation/layers.hpp>

namespace tessera {

/// A look-up of rows: what a weight [rows, features] gives for each index, the product with its one-hot row.
struct lookup {
  index_t rows = 0;
  index_t features = 0;
  tessera::element element = tessera::element::float32;  ///< of the weight and the result
  static_vector<text, max_axes> cut_out = {};            ///< axes that cut the features
  static_vector<text, max_axes> cut_in = {};             ///< axes that cut the rows
  bool has_output = false;
  layout output = {};            ///< the result's partition, where it is given (extents are filled in)
  chosen<index_t> padding = {};  ///< the index of a row that begins as zeros and gets no gradient; below 0 from the far end
  refusal why = {};              ///< what does not fit in the options themselves

  /// That row, or -1.
  constexpr index_t padding_row() const { return !padding.said() ? -1 : padding.as() < 0 ? padding.as() + rows : padding.as(); }
};

/// Plans a look-up: (raw → output) ∘ rows of w ∘ (indices → used), w[rows, features] cut by rows, features or neither.
///
/// Where rows are cut each worker looks up those that it has, and the results are terms of a sum. Unless it is said otherwise a result lies
/// as the indices do, its features cut as the weight's.
constexpr layer_plan plan_lookup(const tensor_value& x, const lookup& what) {
  if (const refusal why = first_of(what.why, check_gradient(what.element)); !why.ok()) return refused_layer(why);
  if (x.element != element::int64 && x.element != element::int32) return refused_layer(refusal{code::indices_wanted, static_cast<int>(x.element)});
  if (what.rows < 1 || what.features < 0) return refused_layer(refusal{code::extent_negative, what.rows < 1 ? 0 : 1, what.rows < 1 ? what.rows : what.features});
  const index_t padding = what.padding_row();
  if (what.padding.said() && (padding < 0 || padding >= what.rows)) return refused_layer(refusal{code::index_out_of_range, what.padding.as(), what.rows});
  const int features = x.layout.dims.count;
  if (features == max_dimensions) return refused_layer(refusal{code::too_many, features + 1});
  layer_plan p = plan_elementwise(x.layout);  // a term of an index is none
  if (!p.why.ok()) return p;
  unsigned taken = 0;
  const auto cut_out = detail::found(x.layout.mesh, what.cut_out, taken, p.why);
  const auto cut_in = detail::found(x.layout.mesh, what.cut_in, taken, p.why);
  if (!p.why.ok()) return p;

  layout used = x.layout;
  for (const auto* axes : {&cut_out, &cut_in})
    for (int a : *axes)
      if (used.roles[a].kind == role::cut) used.set_meaning(a, {});
  parameter_value weight;
  weight.name = "weight";
  weight.used = weight_for(used, {what.rows, what.features});
  for (int a : cut_in) weight.used.cut_by(0, a);
  for (int a : cut_out) weight.used.cut_by(1, a);
  weight.stored = stored_form(weight.used);
  weight.initial = what.padding.said() ? init::with_zeros(init::normal(), padding, padding + 1) : init::normal();
  weight.has_element = true;
  weight.element = what.element;

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
  layout given = what.output;
  if (!what.has_output) {
    given = x.layout;
    given.dims.push(raw.layout.dims[features]);
    for (int a : cut_out) {
      given.set_meaning(a, {});
      given.cut_by(features, a);
    }
  }
  if (p.why = first_of(raw.why, check(weight.used)); !p.why.ok()) return p;
  if (given.dims.count != features + 1) return refused_layer(refusal{code::wrong_number_of_dimensions, given.dims.count, features + 1});
  for (int d = 0; d <= features; ++d) {
    given.dims[d].extent = raw.layout.dims[d].extent;
    given.dims[d].tag = raw.layout.dims[d].tag;
  }
  p = {};
  p.why = first_of(check(given), check_change(x.layout, used), check_change(raw.layout, given));
  p.take(x.layout, used);
  p.give(raw.layout, given, what.element);
  p.own(weight);
  p.holds = footprint::saving(1);
  if (weight.used.levels(0) > 0) {  // which indices are of other workers' rows
    p.holds.returning = 1;
    p.make(used, x.element);
    p.make(used, element::boolean);
  }
  return p;
}

namespace nn {

/// y[…, Features] = w[x[…]], a row of w[Rows, Features] for each index of an integer tensor.
///
/// Options: `cut_out<axes…>` cuts the features, `cut_in<axes…>` the rows, `output_as<partition>`, `weights_as<element>` (float unless said),
/// `padding_idx<index>`.
template <index_t Rows, index_t Features, class... Options>
struct embedding : layer<embedding<Rows, Features, Options...>>, tessera::detail::mesh_of_options<Options...> {
  static constexpr const char* name = "embedding";
  static constexpr option_set takes{topic::cut_out, topic::cut_in, topic::output, topic::weights, topic::padding_idx};
  static constexpr lookup what() {
    const tessera::detail::layer_options o = tessera::detail::read_options<Options...>(takes);
    const contraction& c = o.weights;
    return {Rows, Features, c.has_element ? c.element : tessera::element::float32, c.cut_out, c.cut_in, c.has_output, c.output, o.padding_idx, c.why};
  }
  static constexpr layer_plan plan(const tensor_value& x) { return plan_lookup(x, what()); }
};

}  // namespace nn

template <index_t Rows, index_t Features, class... Options>
inline constexpr kind kind_of<nn::embedding<Rows, Features, Options...>> = kind::layer;

}  // namespace tessera
