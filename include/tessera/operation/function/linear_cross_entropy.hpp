#pragma once

#include <tessera/operation/function/angular_margin.hpp>
#include <tessera/operation/layer/class_options.hpp>
#include <tessera/operation/layer/contraction_values.hpp>
#include <tessera/operation/layer/random_layers.hpp>
#include <tessera/operation/rule/axes_by_name.hpp>

namespace tessera {

namespace engine {

/// The cross-entropy of scores of classes, of which each has a row of a weight.
struct linear_cross_entropy_description {
  index_t classes = 0;
  static_vector<text, max_axes> cut_out = {};  ///< axes that cut the classes, outermost first
  class_scores scores = {};
  bool has_element = false;  ///< the weight is stored in one of its own, not that of the features
  tessera::element element{};
  refusal why = {};  ///< what does not fit in the options themselves

  static constexpr index_t ignored = -100;  ///< the label that is not counted
  /// How many classes are expected in a sample, beside those of labels.
  constexpr index_t expected() const {
    const double all = static_cast<double>(classes) * scores.sample_rate;
    const auto least = static_cast<index_t>(all);
    return least + (static_cast<double>(least) < all);
  }
  constexpr refusal check(const tensor_value& x, const tensor_value& labels) const {
    refusal r = first_of(why, functions::engine::check_takes(functions::engine::takes::reals, x.element));
    if (x.layout.dims.count != 2) r = first_of(r, refusal{code::layer_takes_other_dimensions, 2, x.layout.dims.count});
    if (labels.layout.dims.count != 1)
      r = first_of(r, refusal{code::operand_of_other_dimensions, 1, 1, labels.layout.dims.count});
    if (labels.element != element::int64) r = first_of(r, refusal{code::wrong_element, element::int64, labels.element});
    if (r.ok() && x.layout.dims[1].extent == dynamic) r = refusal{code::extent_not_static, 1};
    if (classes < 1) r = first_of(r, refusal{code::extent_negative, 0, classes});
    return first_of(r, scores.check());
  }
};

/// Plans one: (sum) ∘ loss ∘ (largest, sums) ∘ scores ∘ (features → used), classes cut by axes along which the features
/// are copies. Samples may be cut. Where classes are sampled all labels go to all workers, who keep the classes that
/// occur.
constexpr layer_plan plan_of(const linear_cross_entropy_description& layer, const tensor_value& x,
                             const tensor_value& labels) {
  namespace rows = functions::detail;
  if (const refusal why = layer.check(x, labels); !why.ok()) return refused_layer(why);
  const class_scores& s = layer.scores;
  refusal why;
  unsigned taken = 0;
  const auto axes = detail::found(x.layout.mesh, layer.cut_out, taken, why);
  if (!why.ok()) return refused_layer(why);
  layout used = x.layout;
  layout of_labels = labels.layout;
  for (int a : axes) {
    used.set_placement(a, {});
    if (of_labels.placements[a].kind != placement::invariant) of_labels.set_placement(a, {});
  }
  if (why = first_of(check_change(x.layout, used), check_change(labels.layout, of_labels)); !why.ok())
    return refused_layer(why);

  const index_t features = x.layout.dims[1].extent;
  const auto of_rows = [&](index_t n) {
    layout w = weight_for(used, {n, features});
    for (int a : axes) w.cut_by(0, a);
    return w;
  };
  parameter_value weight;
  weight.name = "weight";
  weight.used = of_rows(layer.classes);
  weight.stored = stored_form(weight.used);
  weight.initial = init::usual(features);
  weight.has_element = layer.has_element;
  weight.element = layer.element;
  weight.as_operand = true;
  const auto scored = [&](const layout& w) {
    signature by;
    by.kind = linearity::nonlinear;
    for (const char* one : {"ND", "N", "CD"}) by.operands.push(named(one));
    by.result = named("NC");
    static_vector<operand, 4> operands = no_items<operand, 4>;
    operands.push({used, false});
    operands.push({of_labels, true});
    operands.push({w, false});
    return infer(by.whole("D"), operands);
  };
  const inferred scores = scored(weight.used);
  if (why = first_of(check(weight.used), scores.why); !why.ok()) return refused_layer(why);
  const layout each = rows::per_sample(scores.layout, {placement::invariant});

  layer_plan p;
  p.why = rows::check_sums(functions::engine::reduced<>(each, linearity::multilinear), each);
  p.add_input(x.layout, used);
  p.add_input(labels.layout, of_labels);
  p.add_output(one_number(each), x.element);
  p.add_parameter(weight);
  const element wide = rows::wide(x.element);
  p.add_exchange(rows::per_sample(scores.layout, partial_by(combine::max)), rows::per_sample(scores.layout, {}), wide,
                 false);
  const exchange_value sums = rows::over_classes({scores.layout, x.element}, 2);
  p.add_exchange(sums.from, sums.to, sums.element);
  const exchange_value total = rows::summing(each, 3);
  p.add_exchange(total.from, total.to, total.element);

  p.saves = saved_tensors::saving(1, s.samples() ? 0 : 1);
  // scores and their gradient, and of a margin what it gives or takes; rows, and those of length one
  const int copies = s.cosines ? 3 : 2;
  p.make(scored(of_rows(layer.expected())).layout, wide, copies);
  if (s.samples() || s.cosines) p.make(of_rows(layer.expected() * (s.samples() + s.cosines)), wide);
  p.take(each, element::float64, s.samples() ? 18 : 11);  // numbers of samples
  p.take_back(each, element::float64, s.samples() ? 18 : 11);
  if (s.cosines) {  // operands of length one
    p.make(used, wide);
    p.take_back(used, wide, 4);
    p.take_back(of_rows(layer.expected()), wide, 4);
  }
  p.add_product({p.made_extents(), p.weight_extents().only(1)});  // all scores that are looked at
  if (!s.samples()) return p;
  layout drawn = weight.used;
  drawn.dims.resize(1);
  p.take(drawn, element::float64, 3);
  layout all = of_labels;
  for (int a = 0; a < all.placements.count; ++a)
    if (all.placements[a].kind == placement::cut) all.set_placement(a, {});
  p.take(all, element::int64, 7);
  p.add_exchange(of_labels, all, element::int64, false);
  detail::keep_draws(p);
  return p;
}

}  // namespace engine

namespace nn {

/// `linear_cross_entropy` as a value: `linear_cross_entropy_layer{.classes = 9, .sample_rate = 0.1}(x, labels)`.
struct linear_cross_entropy_layer {
  static constexpr const char* name = "linear_cross_entropy";
  index_t classes = 0;
  engine::axis_names cut_out{};
  engine::setting<element> weights_as{};
  double sample_rate = 1;
  bool arcface = false;  ///< scores are scaled cosines with a margin
  double margin = 0.5;
  double scale = 64;
  bool easy = false;

  constexpr engine::linear_cross_entropy_description description() const {
    engine::linear_cross_entropy_description d{
        classes, cut_out.list(), {sample_rate, arcface, margin, scale, easy}, false, {}, {}};
    tessera::detail::store_as(d, weights_as);
    return d;
  }
  constexpr layer_plan plan(const tensor_value& x, const tensor_value& labels) const {
    return plan_of(description(), x, labels);
  }
  template <engine::DynamicFlow X, engine::DynamicFlow Y>
  auto operator()(const X& x, const Y& labels) const {
    return tessera::detail::added(*this, x, labels);
  }
};

/// The mean cross-entropy of the scores x wᵀ, of features x[n, d], a weight w[Classes, d] and labels [n], where −100 is
/// not counted. In training it may look at a sample of the classes: those of the batch's labels, and a share of the
/// others (An et al. 2022). It is drawn as `dropout` draws: the same on any partition.
///
/// Options: `cut_out<axes…>` cuts the classes, `sample_rate<n, d>` (1), `arcface<n, d, scale, easy>`,
/// `weights_as<element>`.
template <index_t Classes, class... Options>
struct linear_cross_entropy : engine::described_layer<linear_cross_entropy<Classes, Options...>> {
  static constexpr const char* name = "linear_cross_entropy";
  static constexpr engine::option_kinds takes{engine::option_kind::cut_out, engine::option_kind::sample_rate,
                                              engine::option_kind::arcface, engine::option_kind::weights};
  static constexpr engine::linear_cross_entropy_description description() {
    const tessera::detail::layer_options o = tessera::detail::read_options<Options...>(takes);
    const engine::contraction& c = o.weights;
    const refusal grains = c.grain_out == 1 ? refusal{} : refusal{code::option_not_taken, 0};
    return {Classes, c.cut_out, o.scores, c.has_element, c.element, tessera::detail::first_of(c.why, grains)};
  }
  static constexpr layer_plan plan(const tensor_value& x, const tensor_value& labels) {
    return plan_of(description(), x, labels);
  }
};

}  // namespace nn

template <index_t Classes, class... Options>
inline constexpr kind engine::kind_of<nn::linear_cross_entropy<Classes, Options...>> = kind::layer;
template <>
inline constexpr kind engine::kind_of<nn::linear_cross_entropy_layer> = kind::layer;

}  // namespace tessera
