#pragma once
// Batch and layer normalisation.

#include "layers.hpp"

namespace conformance {

inline double number_of(values& given, const std::string& name, double otherwise) {
  return given.has(name) ? number_named(given.at(name)) : otherwise;
}

inline trial batch_norm(test_case& c) {
  const layout x = blocks_over(grid_of(c.given, "P_x", 'x'), c.given.list("input_shape"));
  if (x.dims.count < 2 || c.given.integer("num_features") != x.dims[1].extent)
    throw unbuilt("num_features are not those of x");
  nn::batch_norm_layer norm;
  norm.eps = number_of(c.given, "eps", norm.eps);
  norm.momentum = number_of(c.given, "momentum", norm.momentum);
  norm.affine = c.given.flag("affine", true);
  norm.tracked = c.given.flag("track_running_stats", true);
  const link l = planned(norm.description(), norm.plan({x, element::float32}));
  trial t = run_layer(c, l);
  if (!c.given.has("affine_workers")) return t;
  json distinct = json::array();  // the workers whose part of the weight is no copy
  for (int i = 0; norm.affine && i < x.mesh.size(); ++i)
    if (const int r = x.mesh.rank(x.mesh.at(i)); first_copy(l.plan.stored(0), r) == r) distinct.push_back(r);
  compare(c.given.at("affine_workers"), distinct, "affine_workers ", t.mismatches);
  return t;
}

/// Layer normalisation, its parameters stored as copies or (ZeRO) as a tiling over all other axes.
inline trial layer_norm(test_case& c, bool zero) {
  const layout x = blocks_over(grid_of(c.given, "P_x", 'x'), c.given.list("input_shape"));
  const integers over = c.given.list("normalized_shape");
  const integers shape = extents_of(x);
  if (over.size() > shape.size() || !std::equal(over.rbegin(), over.rend(), shape.rbegin()))
    throw unbuilt("normalized_shape does not end x's");
  nn::layer_norm_layer norm;
  norm.last = static_cast<int>(over.size());
  norm.eps = number_of(c.given, "eps", norm.eps);
  norm.affine = c.given.flag("elementwise_affine", true);
  norm.bias = norm.affine;
  link l = planned(norm.description(), norm.plan({x, element::float32}));
  if (zero) store_as_tiling(l.plan, norm.last - 1);
  return run_layer(c, l);
}

}  // namespace conformance
