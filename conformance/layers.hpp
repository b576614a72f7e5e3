#pragma once
// Linear layers, convolutions and pooling as links of a chain.

#include "halos.hpp"

#include <tessera/operation/layer/contraction_plan.hpp>

namespace conformance {

/// A layer with the plan that the library makes.
inline link planned(const link::layer& what, const layer_plan& plan) {
  check(plan.why);
  return {what, plan};
}

/// A layer on one grid: x cut by it.
inline link contraction_on(const layout& x, const contraction& what) {
  return planned(what, plan_of(what, {x, element::float32}));
}

/// Stores parameters as a tiling over the axes along which they are used as copies: ZeRO. These axes cut dimension
/// `dim` of the weight and the bias inside what cuts them already.
inline void store_as_tiling(layer_plan& p, int dim) {
  for (int i = 0; i < p.parameters(); ++i) {
    layout stored = p.stored(i);
    for (int a = 0; a < stored.placements.count; ++a)
      if (p.weight(i).placements[a].kind == placement::replicate) stored.cut_by(stored.dims.count == 1 ? 0 : dim, a);
    p.set_stored(stored, i);
  }
}

/// The three grids of a layer whose weight lies on a grid of its own: P_w cuts outputs, inputs, and the dimensions
/// behind.
struct three_grids {
  layout x;           ///< on P_x
  mesh_value weight;  ///< P_w
  mesh_value result;  ///< P_y
};

/// y = Fold W → Y ( Move X → W x · w ) + b, with w cut over outputs and inputs and b on the workers of inputs 0.
inline link contraction_over(const three_grids& on, contraction what) {
  layout there = whole(on.weight, {});
  there.dims = on.x.dims;
  for (engine::dimension& d : there.dims) d.balance(1);
  const int feature = what.feature < 0 ? there.dims.count + what.feature : what.feature;
  there.cut_by(feature, 1);
  for (int a = 2; a < on.weight.axes.count; ++a) there.cut_by(feature + a - 1, a);
  what.cut_is_set = true;
  what.cut_out.push(on.weight.axes[0].name);
  what.cut_in.push(on.weight.axes[1].name);
  const bool bias = what.bias;
  what.bias = false;
  link l = contraction_on(there, what);
  what.bias = bias;
  l.what = what;
  l.plan.set_given(on.x);
  l.plan.set_output(blocks_over(on.result, extents_of(l.plan.raw())));
  check(first_of(check_change(l.plan.given(), l.plan.used()), check_change(l.plan.raw(), l.plan.output())));
  if (!bias) return l;
  parameter_value b;
  b.name = "bias";
  b.initial = l.plan.parameter(0).initial;
  b.stored = whole(on.weight, {what.out});
  for (auto& r : b.stored.placements) r = {placement::invariant};
  b.stored.placements[1] = held_on(0);
  b.stored.placements[0] = {};
  b.stored.cut_by(0, 0);
  b.used = whole(on.result, {what.out});
  b.used.cut_by(0, feature);
  l.plan.add_parameter(b);
  return l;
}

/// The case is this layer; the file's name of the check says which tensor is x.
inline trial run_layer(const test_case& c, const link& l) {
  trial t;
  t.links = {l};
  t.workers =
      std::max(world_of(l.plan.given().mesh), std::max(world_of(l.plan.used().mesh), world_of(l.plan.output().mesh)));
  if (c.kind == "adjoint_weight") t.leaf = 0;
  if (c.kind == "adjoint_bias") t.leaf = 1;
  return t;
}

inline trial linear_on_three(test_case& c) {
  contraction what;
  what.out = extent_named(c.given, "out_features");
  what.bias = c.given.flag("bias", true);
  const layout x = blocks_over(grid_of(c.given, "P_x", 'x'), c.given.list("x_global_shape"));
  if (extent_named(c.given, "in_features") != x.dims[x.dims.count - 1].extent)
    throw unbuilt("in_features are not those of x");
  c.given.has("y_global_shape");
  return run_layer(c, contraction_over({x, grid_of(c.given, "P_w", 'w'), grid_of(c.given, "P_y", 'y')}, what));
}

/// The input gathered over the model axis, or the result reduced over it; `feature` as in `contraction`.
inline link contraction_along(const layout& x, contraction what, int model, bool gathers) {
  what.cut_is_set = true;
  (gathers ? what.cut_out : what.cut_in).push(x.mesh.axes[model].name);
  return contraction_on(x, what);
}

/// LinearAllGather and LinearReduceScatter, parameters stored as copies or (ZeRO) as a tiling over all other axes. The
/// model axis is the last one, or the one before where only that is split: a sequence.
inline trial linear_along(test_case& c, bool gathers) {
  contraction what;
  what.out = extent_named(c.given, "out_features");
  what.bias = c.given.flag("bias", true);
  const layout x = blocks_over(grid_of(c.given, "P_x", 'x'), c.given.list("x_global_shape"));
  const int last = x.dims.count - 1;
  if (extent_named(c.given, "in_features") != x.dims[last].extent) throw unbuilt("in_features are not those of x");
  const bool sequence = gathers && last >= 2 && x.mesh.axes[last].extent == 1 && x.mesh.axes[last - 1].extent > 1;
  link l = contraction_along(x, what, sequence ? last - 1 : last, gathers);
  if (c.given.flag("use_zero")) store_as_tiling(l.plan, gathers ? 1 : 0);
  trial t = run_layer(c, l);
  compare(c.given.at("y_global_shape"), extents_of(l.plan.output()), "y_global_shape ", t.mismatches);
  return t;
}

/// What a convolution of the file is: kernels, channels, bias.
inline contraction convolution_of(test_case& c, std::size_t rank) {
  contraction what;
  what.feature = 1;
  what.out = c.given.has("out_channels") ? extent_named(c.given, "out_channels") : 1;
  what.bias = c.given.flag("bias", false);
  const windows of = windows_of(c.given, rank);
  for (std::size_t d = 2; d < rank; ++d) what.kernels.push(of[d]);
  if (c.given.has("groups")) what.groups = c.given.integer("groups");
  if (c.given.has("padding_mode")) {
    static const std::map<std::string, boundary> edges{{"zeros", boundary::zero},
                                                       {"reflect", boundary::reflect},
                                                       {"replicate", boundary::replicate},
                                                       {"circular", boundary::periodic}};
    const auto edge = edges.find(c.given.text("padding_mode"));
    if (edge == edges.end()) throw unbuilt(fmt::format("padding mode '{}'", c.given.text("padding_mode")));
    for (sliding& s : what.kernels) s.edge = edge->second;
  }
  return what;
}

/// Halos and local shapes of a layer over windows, against those of the file.
inline void compare_halos(test_case& c, const link& l, windows of, trial& t) {
  integers spatial;
  for (int d = 2; d < l.plan.output().dims.count; ++d) spatial.push_back(l.plan.output().dims[d].extent);
  of.resize(static_cast<std::size_t>(l.plan.given().dims.count), sliding{1, 1, 0, 0, 1});
  json ours = halos_of(l.plan.given(), hold(l.plan.given(), of), of);
  if (c.derived.is_object()) {
    json theirs = taken(c.derived);
    const bool only_spatial = theirs.value("note", "") == "spatial axes only; channel axes of the listed index are 0";
    if (only_spatial)
      for (json* side : {&theirs["ranks"], &ours})
        for (json& worker : *side)
          for (const char* name : {"x_local", "local_padding", "halo", "send", "needed"})
            if (worker.contains(name)) worker[name].erase(worker[name].begin(), worker[name].begin() + 2);
    if (theirs.contains("ranks")) compare_workers(theirs.at("ranks"), ours, t.mismatches);
    theirs.erase("ranks");
    if (only_spatial) theirs.erase("note");
    compare(theirs, {{"y_global_spatial", spatial}}, "", t.mismatches);
  }
  if (c.expected.is_object()) {
    json each = json::array();
    for (const json& worker : ours) each.push_back(worker.at("y_local_spatial"));
    compare(taken(c.expected), {{"y_global_spatial", spatial}, {"y_local_spatial", each}}, "", t.mismatches);
  }
}

inline trial feature_convolution(test_case& c) {
  const layout x = blocks_over(grid_of(c.given, "P_x", 'x'), c.given.list("x_global_shape"));
  const link l = contraction_on(x, convolution_of(c, static_cast<std::size_t>(x.dims.count)));
  if (c.given.has("in_channels") && extent_named(c.given, "in_channels") != x.dims[1].extent)
    throw unbuilt("in_channels are not those of x");
  trial t = run_layer(c, l);
  compare_halos(c, l, windows_of(c.given, static_cast<std::size_t>(x.dims.count)), t);
  if (c.given.has("y_local_shape"))
    for (int i = 0; i < x.mesh.size(); ++i)
      compare(c.given.at("y_local_shape"), extents_of(box_of(l.plan.output(), x.mesh.rank(x.mesh.at(i)))),
              fmt::format("worker {} y_local_shape ", i), t.mismatches);
  return t;
}

/// Channel and general convolutions: x, w and y on three grids, the dimensions behind the channels cut by all of them.
inline trial convolution_on_three(test_case& c) {
  const layout x = blocks_over(grid_of(c.given, "P_x", 'x'), c.given.list("x_global_shape"));
  const link l = contraction_over({x, grid_of(c.given, "P_w", 'w'), grid_of(c.given, "P_y", 'y')},
                                  convolution_of(c, static_cast<std::size_t>(x.dims.count)));
  trial t = run_layer(c, l);
  compare_halos(c, l, windows_of(c.given, static_cast<std::size_t>(x.dims.count)), t);
  return t;
}

inline trial convolution_along(test_case& c, bool gathers) {
  const layout x = blocks_over(grid_of(c.given, "P_x", 'x'), c.given.list("x_global_shape"));
  contraction what = convolution_of(c, static_cast<std::size_t>(x.dims.count));
  if (extent_named(c.given, "in_channels") != x.dims[1].extent) throw unbuilt("in_channels are not those of x");
  const link l = contraction_along(x, what, 1, gathers);
  trial t = run_layer(c, l);
  compare(c.given.at("y_global_shape"), extents_of(l.plan.output()), "y_global_shape ", t.mismatches);
  return t;
}

inline trial pool(test_case& c) {
  const layout x = blocks_over(grid_of(c.given, "P_x", 'x'), c.given.list("x_global_shape"));
  const windows of = windows_of(c.given, static_cast<std::size_t>(x.dims.count));
  tessera::engine::pooling what;
  for (std::size_t d = 2; d < of.size(); ++d) what.kernels.push(of[d]);
  const std::string type = c.given.text("layer_type");
  if (type != "max" && type != "avg") throw unbuilt(fmt::format("pooling of the type '{}'", type));
  what.is = type == "max" ? tessera::engine::pooling::kind::max : tessera::engine::pooling::kind::average;
  const link l = planned(what, plan_pooling(x, what));
  trial t = run_layer(c, l);
  compare_halos(c, l, of, t);
  return t;
}

}  // namespace conformance
