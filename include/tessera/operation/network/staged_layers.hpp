#pragma once

#include <tessera/operation/layer/local_layers.hpp>
#include <tessera/operation/memory/layer_memory.hpp>
#include <tessera/operation/plan/layer_arithmetic.hpp>
#include <tessera/operation/rule/axes_by_name.hpp>
#include <tessera/plan/schedule/assignment.hpp>

namespace tessera::engine {

/// A layout on one coordinate of an axis.
constexpr layout on_stage(layout x, int axis, int coordinate) {
  if (x.mesh.axes[axis].extent > 1) x.set_placement(axis, held_on(coordinate));
  return x;
}

/// Whether a tensor lies there already.
constexpr bool is_on_stage(const layout& x, int axis, int coordinate) {
  return x.mesh.axes[axis].extent == 1 ||
         (x.placements[axis].kind == placement::on && x.placements[axis].coordinate == coordinate);
}

/// The same tensor in shards over an axis whose workers all have it, along its largest known dimension that can be cut.
/// It stays as it is where they do not.
constexpr layout in_shards(layout x, int axis) {
  const placement has = x.placements[axis].kind;
  if (x.mesh.axes[axis].extent == 1 || (has != placement::invariant && has != placement::replicate)) return x;
  int largest = -1;
  for (int d = 0; d < x.dims.count; ++d) {
    if (x.dims[d].kind != cover::tiled || !x.dims[d].in_order() || x.dims[d].extent == dynamic) continue;
    if (largest < 0 || x.dims[d].extent > x.dims[largest].extent) largest = d;
  }
  if (largest >= 0) x.cut_by(largest, axis);
  return x;
}

/// The layouts through which a tensor goes to a coordinate of an axis: the one there, or a cut here, that cut there,
/// the whole.
struct way_to_stage {
  refusal why;
  static_vector<layout, 3> over;
};
constexpr way_to_stage way_between(const layout& x, int axis, int coordinate, const text& through) {
  way_to_stage way;
  const int by = through.size == 0 ? -1 : x.mesh.find(through);
  if (through.size != 0 && by < 0) way.why = refusal{code::axis_not_in_mesh, through, x.mesh.axes.count};
  if (by == axis) way.why = refusal{code::axis_used_twice, through};
  if (const layout cut = by < 0 || by == axis ? x : in_shards(x, by); !(cut == x)) {
    way.over.push(cut);
    way.over.push(on_stage(cut, axis, coordinate));
  }
  way.over.push(on_stage(x, axis, coordinate));
  return way;
}

/// Plans a step of the way to a coordinate of a named axis, which begins at `x`.
constexpr layer_plan plan_to_stage(const layout& x, const layout& begin, const text& axis, int coordinate,
                                   const text& through, int step) {
  const int a = x.mesh.find(axis);
  if (a < 0) return refused_layer(refusal{code::axis_not_in_mesh, axis, x.mesh.axes.count});
  const way_to_stage way = way_between(begin, a, coordinate, through);
  return way.why.ok() ? plan_repartition(x, way.over[step]) : refused_layer(way.why);
}

/// What a layer costs in a pipeline. A micro-batch keeps its results and what its backward reads besides; extents that
/// only run time knows count as `rows`. It is computed again `times_again` times.
constexpr pipeline::layer_cost cost_in_stage(layer_plan p, const operand_elements& e, index_t rows, int times_again) {
  bind_rows(p, rows);
  pipeline::layer_cost all;
  all.time = arithmetic_of(p, e).again(times_again).of_a_worker();
  for (int i = 0; i < p.parameters(); ++i) {
    index_t elements = 1;
    for (const dimension& d : p.stored(i).dims) elements = detail::capped_product(elements, d.extent);
    all.parameters = detail::capped_sum(all.parameters, elements);
    const index_t bytes = detail::bytes_held(p.stored(i), p.parameter_element(i, e[0]));
    all.bytes.once = detail::capped_sum(all.bytes.once, p.frozen(i) ? bytes : 2 * bytes);
  }
  for (int i = 0; i < p.buffers(); ++i)
    all.bytes.once = detail::capped_sum(all.bytes.once, detail::bytes_held(p.buffer(i).stored, p.buffer(i).element));
  for (int i = 0; i < p.outputs(); ++i)
    all.bytes.each = detail::capped_sum(all.bytes.each, detail::bytes_held(p.output(i), p.element_of(i, e[0])));
  for (int i = 0; i < p.made(); ++i)
    all.bytes.each = detail::capped_sum(all.bytes.each, detail::bytes_held(p.made(i), p.made_element(i)));
  return all;
}

}  // namespace tessera::engine
