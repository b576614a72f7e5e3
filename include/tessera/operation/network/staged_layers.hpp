#pragma once

#include <tessera/operation/layer/local_layers.hpp>
#include <tessera/operation/memory/layer_memory.hpp>
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

/// Plans the change to a coordinate of a named axis, as `to` does.
constexpr layer_plan plan_to_stage(const layout& x, const text& axis, int coordinate) {
  const int a = x.mesh.find(axis);
  if (a < 0) return refused_layer(refusal{code::axis_not_in_mesh, axis, x.mesh.axes.count});
  return plan_repartition(x, on_stage(x, a, coordinate));
}

/// What a layer costs in a pipeline. A micro-batch keeps its results and what its backward reads besides; extents that
/// only run time knows count as `rows`.
constexpr pipeline::layer_cost cost_in_stage(layer_plan p, const operand_elements& e, index_t rows) {
  p.each_layout([&](layout& x) {
    for (dimension& d : x.dims)
      if (d.extent == dynamic) d.extent = rows;
  });
  pipeline::layer_cost all;
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
