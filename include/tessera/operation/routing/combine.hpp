#pragma once

#include <tessera/operation/function/loss_layouts.hpp>
#include <tessera/operation/layer/value_options.hpp>
#include <tessera/operation/program/layer.hpp>
#include <tessera/operation/routing/routed_layouts.hpp>

namespace tessera {

namespace engine {

/// What brings rows back from experts.
struct row_combining {};

/// Plans the way back of what experts give of their slots, y[expert, group, slot, f]; the other operands are those of
/// the router.
///
/// It is: sums of what places give ∘ (packed rows by place → by source) ∘ sums of gates times slots. The result is
/// [row…, f].
constexpr layer_plan plan_of(const row_combining&, const tensor_value& y, const tensor_value& gates,
                             const tensor_value& numbers, const tensor_value& chosen) {
  const tensor_value* const given[]{&y, &gates, &numbers, &chosen};
  for (int o = 0; o < 3; ++o)
    if (given[o]->layout.dims.count != 4)
      return refused_layer(refusal{code::operand_of_other_dimensions, o, 4, given[o]->layout.dims.count});
  const mesh_value& mesh = y.layout.mesh;
  layout lies[4];
  for (int o = 0; o < 4; ++o) {
    if (!meet(mesh, given[o]->layout.mesh)) return refused_layer(refusal{code::meshes_differ, o});
    lies[o] = over(given[o]->layout, mesh);
  }
  const int last = chosen.layout.dims.count - 1;
  if (last < 1) return refused_layer(refusal{code::operand_of_other_dimensions, 3, 2, last + 1});
  for (element e : {y.element, gates.element})
    if (is_complex(e) || !has_cotangent(e))
      return refused_layer(refusal{code::no_function_of_element, static_cast<int>(e)});
  for (int o = 2; o < 4; ++o)
    if (given[o]->element != element::int64)
      return refused_layer(refusal{code::wrong_element, element::int64, given[o]->element});
  for (int o = 0; o < 4; ++o) {
    if (const refusal r = o == 0 ? refusal{} : detail::check_rows(lies[o], o); !r.ok()) return refused_layer(r);
    for (int d = 0; d < 3; ++d)
      if (!lies[0].dims[d].tiles()) return refused_layer(refusal{code::haloed_summed, 0, d});
  }
  static_vector<int, max_axes> places;
  for (int level = 0; level < lies[1].levels(0); ++level) places.push(lies[1].cutter(0, level));

  // What the router gives lies as its rows do: compared with what these rows would make of it.
  layout numbered = lies[3];
  numbered.dims[last] = lies[1].dims[3];
  const layout packed =
      detail::packed_by_source(numbered, lies[1].dims[0].extent, lies[1].dims[1].extent, lies[1].dims[2].extent);
  const layout there = detail::packed_by_place(packed, places);
  const layout slots = detail::slots_by_expert(there, lies[3].dims[last].extent, lies[0].dims[2].extent);
  layout used = lies[0], weighing = lies[1];
  layout result = lies[3];
  result.dims[last] = lies[0].dims[3];
  for (int d = 0; d < 3; ++d) {
    if (lies[0].dims[d].extent != slots.dims[d].extent)
      return refused_layer(refusal{code::extents_differ, d, slots.dims[d].extent, lies[0].dims[d].extent});
    for (int o = 1; o < 3; ++o)
      if (lies[o].dims[d].extent != there.dims[d].extent)
        return refused_layer(refusal{code::extents_differ, d, there.dims[d].extent, lies[o].dims[d].extent});
  }
  for (int a = 0; a < mesh.axes.count; ++a) {
    if (mesh.axes[a].extent == 1) continue;
    const axis_placement wanted = there.placements[a];
    const axis_placement of = lies[0].placements[a];
    for (int o = 1; o < 3; ++o)
      if (const axis_placement r = lies[o].placements[a];
          (wanted.kind == placement::cut || r.kind == placement::cut) && !(r == wanted))
        return refused_layer(refusal{code::cut_unalike, mesh.axes[a].name, o, wanted.dimension});
    if (wanted.kind == placement::cut ? !(of == wanted) : of.kind == placement::cut && of.dimension < 3)
      return refused_layer(refusal{code::cut_unalike, mesh.axes[a].name, 0,
                                   wanted.kind == placement::cut ? wanted.dimension : of.dimension});
    if ((of.kind == placement::on) != (wanted.kind == placement::on))
      return refused_layer(refusal{code::held_on_one_coordinate, mesh.axes[a].name, 0});
    if (wanted.kind == placement::cut || wanted.kind == placement::on) continue;
    // Copies of gates meet parts of the features, terms, or copies: what is used differently is replicate.
    const bool alike = of.kind == placement::invariant && lies[1].placements[a].kind == placement::invariant;
    if (!alike) weighing.placements[a] = {};
    if (!alike && of.kind == placement::invariant) used.placements[a] = {};
    result.placements[a] = used.placements[a];
    if (of.kind == placement::cut) result.placements[a].dimension = static_cast<signed char>(last);
  }
  for (int d = 0; d < 2; ++d)
    if (!same_intervals(lies[0].dims[d], slots.dims[d], lies[0].part_count(d)))
      return refused_layer(refusal{code::cut_unalike, detail::cutter_name(lies[0], d), 0, d});

  layer_plan p;
  if (same(lies[0], used)) p.add_input(y.layout);
  else p.add_input(y.layout, used);
  if (same(lies[1], weighing)) p.add_input(gates.layout);
  else p.add_input(gates.layout, weighing);
  p.add_input(numbers.layout);
  p.add_input(chosen.layout);
  p.add_output(result);
  const layout back =
      detail::packed_by_source(result, lies[1].dims[0].extent, lies[1].dims[1].extent, lies[1].dims[2].extent);
  p.add_exchange(detail::packed_by_place(back, places), back, y.element);
  // Backward reads the gates and the slots of each row that came, and lists of rows.
  p.saves = saved_tensors::saving(1u << 1);
  p.saves.exchanges = false;
  layout slots_of_rows = p.from(0);
  index_t& each = slots_of_rows.dims[2].extent;
  if (each != dynamic) each = detail::capped_product(each, detail::larger(1, lies[1].dims[3].extent));
  p.make(slots_of_rows, functions::detail::wide(y.element));
  p.make(lies[2], element::int64);
  p.make(chosen.layout, element::int64);
  // Sums are there in copies with zeros behind them, and one place after the other. Backward multiplies gradients by
  // gates and by slots before those of slots are there.
  const auto held = [](const layout& x) {
    index_t n = 1;
    for (const dimension& d : x.dims)
      n = n == dynamic || d.extent == dynamic ? dynamic : detail::capped_product(n, d.extent);
    return n;
  };
  const bool moves = !(p.from(0) == p.to(0)), full = held(slots_of_rows) > held(used);
  const element wide = functions::detail::wide(y.element);
  p.take(back, y.element, moves ? 1 : 2);
  p.take(result, y.element, places.empty() ? 0 : 2);
  if (const index_t experts = lies[1].dims[3].extent; experts > 1) p.take(back, wide, experts - 1);
  p.take_back(back, y.element, full ? 0 : 1);
  p.take_back(slots_of_rows, wide, 1 + full);
  p.why = first_of(check_count(back), check_count(slots_of_rows));
  return p;
}

}  // namespace engine

namespace nn {

/// What experts give of their slots, back at the rows that `route` took: y[row…] = Σ gate · slot over the experts of a
/// row. An expert that dropped it gives nothing. `combine{}(experts(slots), gates, numbers, chosen)`.
///
/// The sum of a row over the experts of one worker goes back once, in the element of the slots.
struct combine : engine::described_layer<combine> {
  static constexpr const char* name = "combine";
  static constexpr int named_by = 3;  ///< the operand whose extents have the names of the result's
  static constexpr bool only_here = true;
  static constexpr engine::row_combining description() { return {}; }
  static constexpr layer_plan plan(const tensor_value& y, const tensor_value& gates, const tensor_value& numbers,
                                   const tensor_value& chosen) {
    return plan_of(description(), y, gates, numbers, chosen);
  }
};

}  // namespace nn

template <>
inline constexpr kind engine::kind_of<nn::combine> = kind::layer;

}  // namespace tessera
