#pragma once
// Linear layers of experts: x[experts, capacity, sequence, in], each dimension cut by its axis.

#include "layers.hpp"

namespace conformance {

/// A tensor of experts and the axes that cut it, one for each dimension; of three dimensions in the file the sequence is missing, which
/// then has one step that nothing cuts.
struct expert_tensor {
  layout tiles;
  std::vector<int> axis;
};
inline expert_tensor of_experts(const mesh_value& grid, integers shape) {
  if (shape.size() != static_cast<std::size_t>(grid.axes.count) || (shape.size() != 3 && shape.size() != 4))
    throw unbuilt("experts of other than three or four dimensions");
  const bool sequence = shape.size() == 4;
  if (!sequence) shape.insert(shape.begin() + 2, 1);
  expert_tensor x{whole(grid, shape), {0, 1, sequence ? 2 : -1, sequence ? 3 : 2}};
  for (int d = 0; d < 4; ++d)
    if (const int a = x.axis[static_cast<std::size_t>(d)]; a >= 0) x.tiles.cut_by(d, a);
  return x;
}

/// The input gathered over the model axis, or the result reduced over it. That is the last axis, or the sequence's where only that is
/// split. The weight [experts, in, out] is stored as a tiling over the axis of the capacity too.
inline trial expert_linear(test_case& c, bool gathers) {
  const mesh_value grid = grid_of(c.given, "P_x", 'x');
  const expert_tensor x = of_experts(grid, c.given.list("x_global_shape"));
  const expert_tensor y = of_experts(grid, c.given.list("y_global_shape"));
  const index_t count = x.tiles.dims[0].extent;
  const index_t in = x.tiles.dims[3].extent;
  const index_t out = y.tiles.dims[3].extent;
  if (extent_named(c.given, "in_features") != in || extent_named(c.given, "out_features") != out)
    throw unbuilt("features that are not those of x and y");
  if (count % extent_named(c.given, "num_experts") != 0) throw unbuilt("experts that are not those of x");
  const auto split = [&](int a) { return a >= 0 && grid.axes[a].extent > 1; };
  const bool sequence = gathers && !split(x.axis[3]) && split(x.axis[2]);
  const int model = x.axis[sequence ? 2 : 3];

  layout used = x.tiles;
  layout given_out = y.tiles;
  if (gathers) used.set_meaning(model, {});
  if (sequence) {
    given_out.set_meaning(model, {});
    given_out.cut_by(3, model);
  }
  parameter_value w;
  w.name = "weight";
  w.initial.fan_in = in;
  w.used = whole(grid, {count, in, out});
  w.used.cut_by(0, x.axis[0]);
  w.used.cut_by(gathers ? 2 : 1, model);
  w.stored = stored_form(w.used);
  w.stored.cut_by(gathers ? 1 : 2, x.axis[1]);
  link l;
  l.what = experts{};
  l.plan.take(x.tiles, used);
  l.plan.give(given_out);
  l.plan.own(w);
  if (c.given.flag("bias", true)) {
    parameter_value b;
    b.name = "bias";
    b.used = whole(grid, {count, 1, out});
    b.used.cut_by(0, x.axis[0]);
    b.used.cut_by(2, model);
    b.stored = stored_form(b.used);
    l.plan.own(b);
  }
  return run_layer(c, l);
}

}  // namespace conformance
