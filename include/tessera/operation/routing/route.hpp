#pragma once

#include <tessera/operation/function/loss_layouts.hpp>
#include <tessera/operation/layer/random_layers.hpp>
#include <tessera/operation/layer/value_options.hpp>
#include <tessera/operation/routing/routed_layouts.hpp>
#include <tessera/operation/routing/routing_options.hpp>
#include <tessera/operation/rule/axes_by_name.hpp>

namespace tessera {

namespace engine {

/// Plans a router of x[row…, f] by scores [row…, experts].
///
/// It is: each place's rows to the slots of its experts ∘ (packed rows by source → by place) ∘ the rows of each place.
/// A place is a part of the experts. A row goes there once, however many of its experts are there. The results are
///  - slots [expert, group, slot, f], zeros where no row is
///  - gates [place, group, row, number], of each row that came and its experts there
///  - numbers of their slots alike, expert · slots + slot, −1 where there is none
///  - what became of each row [row…, experts]: −1 not chosen, −2 dropped, else its number among the rows at the place
constexpr layer_plan plan_of(const routing& layer, const tensor_value& x, const tensor_value& scores) {
  if (const refusal r = layer.check(); !r.ok()) return refused_layer(r);
  const mesh_value& mesh = x.layout.mesh;
  if (!meet(mesh, scores.layout.mesh)) return refused_layer(refusal{code::meshes_differ, 1});
  const layout given = over(x.layout, mesh), judging = over(scores.layout, mesh);
  const int last = given.dims.count - 1;
  if (last < 1) return refused_layer(refusal{code::layer_takes_other_dimensions, 2, last + 1});
  for (element e : {x.element, scores.element})
    if (is_complex(e) || !has_cotangent(e))
      return refused_layer(refusal{code::no_function_of_element, static_cast<int>(e)});
  if (const refusal r = first_of(detail::check_rows(given, 0), detail::check_rows(judging, 1),
                                 detail::check_rows_alike(given, judging, 1));
      !r.ok())
    return refused_layer(r);
  if (judging.dims[last].extent != layer.experts)
    return refused_layer(refusal{code::extents_differ, last, layer.experts, judging.dims[last].extent});

  refusal unknown;
  unsigned seen = 0;
  const static_vector<int, max_axes> sources = detail::row_axes(given);
  const static_vector<int, max_axes> places =
      layer.is_over ? detail::several_of(mesh, detail::found(mesh, layer.over, seen, unknown)) : sources;
  if (!unknown.ok()) return refused_layer(unknown);
  for (int a : places)
    if (const axis_placement& r = given.placements[a];
        r.kind == placement::on || (r.kind == placement::cut && r.dimension == last))
      return refused_layer(refusal{code::experts_not_over, mesh.axes[a].name});
  const index_t count = detail::coordinates_of(mesh, sources);
  const detail::routing_groups in = detail::routing_groups_of(layer, given, count);
  if (!in.why.ok()) return refused_layer(in.why);
  const index_t slots = in.slots, groups = in.bins;
  const index_t many = detail::coordinates_of(mesh, places);
  layout experts = detail::packed_by_place(detail::packed_by_source(given, many, groups, dynamic), places);
  experts = detail::slots_by_expert(experts, layer.experts, slots);
  const index_t here = detail::parts(experts, 0).largest();
  const index_t rows = slots == dynamic ? dynamic : detail::smaller(in.of_bin, detail::capped_product(here, slots));
  layout numbers = judging;
  numbers.dims[last] = {};
  numbers.dims[last].extent = detail::smaller(layer.choices, here);

  layer_plan p;
  p.add_input(x.layout);
  p.add_input(scores.layout);
  layout packed = detail::packed_by_source(given, many, groups, rows);
  layout gates = detail::packed_by_source(numbers, many, groups, rows);
  if (!layer.is_limited) packed.dims[2].tag = gates.dims[2].tag = second_open;
  const element wide = functions::detail::wide(scores.element);
  p.add_output(experts, x.element);
  p.add_output(gates, detail::packed_by_place(gates, places), wide);
  p.add_output(gates, detail::packed_by_place(gates, places), element::int64);
  p.add_output(judging, element::int64);
  p.add_exchange(packed, detail::packed_by_place(packed, places), x.element);
  const exchange_value told = functions::detail::summing(judging, layer.rate > 0 ? 1 + layer.experts : 1);
  p.add_exchange(told.from, told.to, told.element, false);
  if (in.spans && layer.is_limited) {
    layout choices = judging, by_all;
    choices.dims[last].extent = 2 * layer.choices;
    by_all = choices;
    for (int a : sources) by_all.set_placement(a, {placement::invariant});
    p.add_exchange(choices, by_all, element::float64, false);
  }
  if (layer.noise > 0) detail::keep_draws(p);
  if (layer.rate > 0)
    p.add_buffer({"bias", functions::detail::in_rows(one_number(judging), layer.experts), init::zeros(),
                  element::float64, true});
  // Backward reads the gates of all experts and lists of rows, no row.
  p.saves = saved_tensors::saving(0);
  p.saves.exchanges = false;
  p.make(judging, wide);
  p.make(gates, element::int64);
  p.make(p.output(1), element::int64);
  // Rows are copied with one of zeros behind them before places take some of them, and so are those that came.
  const bool moves = !(p.from(0) == p.to(0));
  p.take(p.to(0), x.element, moves ? 1 : 2);
  p.take_back(p.to(0), x.element, moves ? 0 : 1);
  p.take(judging, element::int64, 1 + 2 * (layer.noise > 0) + 2 * (layer.rate > 0));
  layout lists = judging;  // of rows, by choices and by places
  lists.dims[last] = {};
  lists.dims[last].extent = detail::capped_sum(4 * layer.choices, detail::capped_product(10 + layer.choices, many));
  p.take(lists, element::int64);
  p.why = first_of(check_count(p.output(0)), check_count(packed));
  return p;
}

}  // namespace engine

namespace nn {

/// Gives each row of x[row…, f] to the k experts of largest score, scores [row…, Experts]: `const auto [slots, gates,
/// numbers, chosen] = route<8, choices<2>, capacity<5, 4>>{}(x, scores); combine{}(experts(slots), gates, numbers,
/// chosen)`.
///
/// Slots are [Experts, group, slot, f], for `experts`. A gate is the softmax of a row's scores. A group of rows has
/// ⌈c·rows·k/Experts⌉ slots of each expert. First choices come before second ones, rows in order; the rest is dropped.
/// A row goes once to each worker that has some of its experts. A gate that is no number is told on all workers
/// (Shazeer et al. 2017; Lepikhin et al. 2021). Options: `choices<k>` (1), `capacity<n, d>`, `over_experts<axes…>`,
/// `groups<n>`, `sigmoid_gates`, `normalised_gates`, `drop_by_score`, `noise<n, d>`, `balanced_by_bias<n, d>`.
template <index_t Experts, class... Options>
struct route : engine::described_layer<route<Experts, Options...>> {
  static constexpr const char* name = "route";
  static constexpr int results = 4;
  static constexpr engine::option_kinds takes{
      engine::option_kind::choices,  engine::option_kind::capacity, engine::option_kind::over_experts,
      engine::option_kind::groups,   engine::option_kind::gates,    engine::option_kind::normalised,
      engine::option_kind::by_score, engine::option_kind::noise,    engine::option_kind::rate};
  static constexpr engine::routing description() {
    const tessera::detail::layer_options o = tessera::detail::read_options<Options...>(takes);
    engine::routing r = o.routes;
    r.experts = Experts;
    if (tessera::detail::has_option<engine::option_kind::groups, Options...>()) r.groups = o.weights.groups;
    r.why = o.weights.why;
    return r;
  }
  /// The serial model has no layer for it unless it keeps something.
  static constexpr bool only_here() { return description().noise == 0 && description().rate == 0; }
  static constexpr layer_plan plan(const tensor_value& x, const tensor_value& scores) {
    return plan_of(description(), x, scores);
  }
};

/// `route` as a value, of which flows of a program are taken: `route_layer{.experts = 8, .choices = 2, .capacity =
/// 1.25}(x, scores)`.
struct route_layer {
  static constexpr const char* name = "route";
  static constexpr int results = 4;
  index_t experts = 0;
  index_t choices = 1;
  engine::setting<double> capacity{};  ///< no row is dropped unless it is said
  engine::setting<engine::axis_names> over_experts{};
  index_t groups = 0;
  bool sigmoid_gates = false;
  bool normalised_gates = false;
  bool drop_by_score = false;
  double noise = 0;
  double balanced_by_bias = 0;

  constexpr engine::routing description() const {
    return {.experts = experts,
            .choices = choices,
            .is_limited = capacity.is_set(),
            .capacity = capacity.value(),
            .sigmoid = sigmoid_gates,
            .normalised = normalised_gates,
            .by_score = drop_by_score,
            .groups = groups,
            .noise = noise,
            .rate = balanced_by_bias,
            .over = over_experts.value().list(),
            .is_over = over_experts.is_set()};
  }
  constexpr bool only_here() const { return noise == 0 && balanced_by_bias == 0; }
  constexpr layer_plan plan(const tensor_value& x, const tensor_value& scores) const {
    return plan_of(description(), x, scores);
  }
  template <engine::DynamicFlow First, engine::DynamicFlow... Rest>
  auto operator()(const First& first, const Rest&... rest) const {
    return tessera::detail::added(*this, first, rest...);
  }
};

}  // namespace nn

template <index_t Experts, class... Options>
inline constexpr kind engine::kind_of<nn::route<Experts, Options...>> = kind::layer;
template <>
inline constexpr kind engine::kind_of<nn::route_layer> = kind::layer;

}  // namespace tessera
