#pragma once
// The one convolution that finds its form from the partitions it is given.

#include "layers.hpp"

namespace conformance {

/// Where a convolution of the file finds its tensors: only x, or x, w and y.
struct conv_grids {
  mesh_value x;
  std::optional<mesh_value> w;
  std::optional<mesh_value> y;
};

/// The form: halos of a single grid, channels on three grids, or both.
inline std::string form_of(const conv_grids& g) {
  if (!g.w || !g.y) return "Feature";
  for (int a = 2; a < g.x.axes.count; ++a)
    if (g.x.axes[a].extent != 1) return "General";
  return "Channel";
}

/// The convolution on the grids that are there; one of three left out leaves a layout without dimensions, which is
/// refused.
inline link convolution(const conv_grids& g, const layout& x, const contraction& what) {
  if (!g.w && !g.y) return contraction_on(x, what);
  link l = contraction_over({x, g.w.value_or(*g.y), g.y.value_or(g.x)}, what);
  if (!g.w) {
    layer_plan unused;
    unused.add_input(l.plan.given(), {});
    unused.add_output(l.plan.raw(), l.plan.output());
    l.plan = unused;
  }
  if (!g.y) l.plan.set_output({});
  return l;
}

inline trial selector(test_case& c) {
  conv_grids g{grid_of(c.given, "P_x", 'x'), {}, {}};
  if (c.given.has("P_w_shape")) g.w = grid_of(c.given, "P_w", 'w');
  if (c.given.has("P_y_shape")) g.y = grid_of(c.given, "P_y", 'y');
  for (const char* null : {"P_w_ranks", "P_y_ranks"}) c.given.has(null);
  contraction what;
  what.feature = 1;
  what.out = c.given.has("out_channels") ? c.given.integer("out_channels") : 5;
  what.bias = c.kind != "must_reject";  // the mended call is asked for its adjoint, so it must be linear
  const std::size_t slides = c.given.at("kernel_size").size();
  integers shape{2, c.given.has("in_channels") ? c.given.integer("in_channels") : 4};
  shape.resize(slides + 2, 9);
  const windows of = windows_of(c.given, shape.size());
  for (std::size_t d = 2; d < shape.size(); ++d) what.kernels.push(of[d]);
  const layout x = blocks_over(g.x, shape);
  trial t = run_layer(c, convolution(g, x, what));
  if (c.kind == "must_reject") {
    for (const json& words : c.given.at("cases")) {
      conv_grids faulty = g;
      if (words == "P_x and P_y given, P_w missing") faulty.w.reset();
      else if (words == "P_x and P_w given, P_y missing") faulty.y.reset();
      else throw unbuilt(fmt::format("the phrase {} is unknown", words.dump()));
      t.faults.push_back({{convolution(faulty, x, what)}, {}});
    }
    return t;
  }
  t.compares = {compared::y, compared::dx, compared::dw, compared::db};
  t.element = element::float64;
  t.rtol = 1e-5;
  t.atol = 1e-8;
  if (c.given.text("InputLayerType") != fmt::format("distdl.nn.DistributedConv{}d", slides))
    throw unbuilt("another selector");
  compare(c.given.at("OutputLayerType"), fmt::format("distdl.nn.Distributed{}Conv{}d", form_of(g), slides),
          "the constructed type ", t.mismatches);
  return t;
}

}  // namespace conformance
