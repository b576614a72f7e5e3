#pragma once
// Linear layers of experts: x[experts, capacity, sequence, in], each dimension cut by its axis.

#include "layers.hpp"

#include <tessera/operation/network/sharded_parameters.hpp>

namespace conformance {

/// The input gathered over the model axis, or the result reduced over it. That is the last axis, or the sequence's
/// where only that is split. Weights are stored as tiles over the axis of the capacity too. Of three dimensions in the
/// file the sequence is missing, which then has one step that nothing cuts.
inline trial expert_linear(test_case& c, bool gathers) {
  const mesh_value grid = grid_of(c.given, "P_x", 'x');
  integers shape = c.given.list("x_global_shape");
  if (shape.size() != static_cast<std::size_t>(grid.axes.count) || (shape.size() != 3 && shape.size() != 4))
    throw unbuilt("experts of other than three or four dimensions");
  const bool sequence = shape.size() == 4;
  if (!sequence) shape.insert(shape.begin() + 2, 1);
  layout x = whole(grid, shape);
  for (int a = 0; a < grid.axes.count; ++a) x.cut_by(a == 2 && !sequence ? 3 : a, a);
  contraction what;
  what.out = extent_named(c.given, "out_features");
  what.bias = c.given.flag("bias", true);
  what.divide_among(shape[0]);
  if (extent_named(c.given, "in_features") != shape[3]) throw unbuilt("in_features are not those of x");
  if (shape[0] % extent_named(c.given, "num_experts") != 0) throw unbuilt("experts that are not those of x");
  const int last = grid.axes.count - 1;
  const bool of_sequence = gathers && sequence && grid.axes[last].extent == 1 && grid.axes[last - 1].extent > 1;
  link l = contraction_along(x, what, of_sequence ? last - 1 : last, gathers);
  tiles_over capacity;
  capacity.axes.push(grid.axes[1].name);
  l.plan = tessera::detail::stored_as_tiles(l.plan, capacity);
  trial t = run_layer(c, l);
  integers result = extents_of(l.plan.output());
  if (!sequence) result.erase(result.begin() + 2);
  compare(c.given.at("y_global_shape"), result, "y_global_shape ", t.mismatches);
  return t;
}

}  // namespace conformance
