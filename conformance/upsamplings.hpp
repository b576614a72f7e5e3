#pragma once
// Upsampling to the nearest element by whole factors.

#include "layers.hpp"

namespace conformance {

/// The factors between two shapes of which the first two dimensions are alike.
inline upsampling factors_between(const integers& x, const integers& y) {
  if (x.size() != y.size() || x.size() < 3) throw unbuilt("an interpolation between these shapes");
  upsampling what;
  for (std::size_t d = 0; d < x.size(); ++d) {
    if (x[d] < 1 || y[d] % x[d] != 0 || (d < 2 && y[d] != x[d])) throw unbuilt("interpolation by a fraction");
    if (d >= 2) what.factors.push(y[d] / x[d]);
  }
  return what;
}

inline void only_nearest(values& given) {
  if (const std::string mode = given.text("mode"); mode != "nearest") throw unbuilt(fmt::format("interpolation of the mode '{}'", mode));
  if (given.flag("align_corners")) throw unbuilt("aligned corners of the mode 'nearest'");
}

/// What each worker needs of x, whose halo that is, and what it makes of it.
inline json needs_of(const layer_plan& p) {
  const auto list = [](const interval& i) { return json{i.lo, i.hi}; };
  json all = json::array();
  for (int i = 0; i < p.given().mesh.size(); ++i) {
    const coordinates at = p.given().mesh.at(i);
    const int rank = p.given().mesh.rank(at);
    const box own = box_of(p.given(), rank);
    const box needed = box_of(p.used(), rank);
    const box made = box_of(p.output(), rank);
    json worker{{"index", std::vector<int>(at.begin(), at.end())}};
    for (const char* name : {"halo", "needed", "x_needed", "y"}) worker[name] = json::array();
    for (int d = 0; d < own.count; ++d) {
      const index_t left = std::max<index_t>(0, own[d].lo - needed[d].lo);
      const index_t right = std::max<index_t>(0, needed[d].hi - own[d].hi);
      worker["halo"].push_back({left, right});
      worker["needed"].push_back({needed[d].lo - own[d].lo + left, needed[d].hi - own[d].lo + left});
      worker["x_needed"].push_back(list(needed[d]));
      worker["y"].push_back(list(made[d]));
    }
    all.push_back(worker);
  }
  return all;
}

inline trial upsample(test_case& c) {
  only_nearest(c.given);
  const layout x = blocks_over(grid_of(c.given, "P_x", 'x'), c.given.list("x_global_shape"));
  const upsampling what = factors_between(extents_of(x), c.given.list("y_global_shape"));
  const double factor = number_named(c.given.at("scale_factor"));
  for (const index_t f : what.factors)
    if (static_cast<double>(f) != factor) throw unbuilt("a scale_factor that is not between the shapes");
  c.given.flag("use_size");  // whole factors and sizes say the same
  const link l = planned(what, plan_upsampling({x, element::float32}, what));
  trial t = run_layer(c, l);
  if (!c.derived.is_object()) return t;
  json theirs = taken(c.derived);
  if (theirs.contains("per_rank")) compare_workers(theirs.at("per_rank"), needs_of(l.plan), t.mismatches);
  theirs.erase("per_rank");
  compare(theirs, json::object(), "", t.mismatches);
  return t;
}

/// The same on one worker, where it has all of x and makes all of y.
inline trial interpolation(test_case& c) {
  only_nearest(c.given);
  const auto count = static_cast<std::size_t>(2 + c.given.integer("dimension"));
  const auto shape = [&](const char* name) {
    integers n = c.given.list(name);
    if (n.size() < count) throw unbuilt(fmt::format("the parameter '{}' has {} entries, not {}", name, n.size(), count));
    n.resize(count);
    return n;
  };
  const integers x = shape("x_global_shape");
  const integers y = shape("y_global_shape");
  const integers begin(count, 0);
  if (shape("x_start") != begin || shape("y_start") != begin || shape("x_stop") != x || shape("y_stop") != y)
    throw unbuilt("interpolation of a part");
  const upsampling what = factors_between(x, y);
  const layout all = blocks_over(grid_over({0}, integers(count, 1), 'x'), x);
  return run_layer(c, planned(what, plan_upsampling({all, element::float32}, what)));
}

}  // namespace conformance
