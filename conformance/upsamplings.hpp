#pragma once
// Interpolation: as a layer on a grid, and of windows by itself.

#include "layers.hpp"

namespace conformance {

/// How a case interpolates, without factors and sizes.
inline upsampling interpolation_of(values& given) {
  static const std::map<std::string, interpolation> modes{{"nearest", interpolation::nearest},
                                                          {"linear", interpolation::linear}};
  const std::string name = given.text("mode");
  const auto mode = modes.find(name);
  if (mode == modes.end()) throw unbuilt(fmt::format("interpolation of the mode '{}'", name));
  upsampling what;
  what.mode = mode->second;
  what.align_corners = given.flag("align_corners");
  return what;
}

/// What each worker needs of x by exact arithmetic, whose halo that is, and what it makes of it.
inline json needs_of(const upsampling& what, const layer_plan& p) {
  const auto list = [](const engine::interval& i) { return json{i.lo, i.hi}; };
  layout exact = p.given();
  for (int i = 0; i < what.count(); ++i) {
    const index_t n = exact.dims[2 + i].extent;
    check(tessera::detail::hold_window(exact, 2 + i, what.over(i, n).exact(), what.outputs(i, n), what.keeps(i)));
  }
  json all = json::array();
  for (int i = 0; i < p.given().mesh.size(); ++i) {
    const coordinates at = p.given().mesh.at(i);
    const int rank = p.given().mesh.rank(at);
    const box own = box_of(p.given(), rank);
    const box needed = box_of(exact, rank);
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
  const layout x = blocks_over(grid_of(c.given, "P_x", 'x'), c.given.list("x_global_shape"));
  const integers y = c.given.list("y_global_shape");
  const double factor = number_named(c.given.at("scale_factor"));
  const bool to_size = c.given.flag("use_size");
  upsampling what = interpolation_of(c.given);
  if (y.size() < 3 || y.size() > 5) throw unbuilt(fmt::format("interpolation of {} dimensions", y.size()));
  for (std::size_t d = 2; d < y.size(); ++d) {
    if (to_size) what.sizes.push(y[d]);
    else what.factors.push(factor);
  }
  const link l = planned(what, plan_of(what, {x, element::float32}));
  trial t = run_layer(c, l);
  if (to_size) compare(c.given.at("y_global_shape"), extents_of(l.plan.output()), "y_global_shape ", t.mismatches);
  if (!c.derived.is_object()) return t;
  json theirs = taken(c.derived);
  if (theirs.contains("per_rank")) compare_workers(theirs.at("per_rank"), needs_of(what, l.plan), t.mismatches);
  theirs.erase("per_rank");
  compare(theirs, {{"y_global", extents_of(l.plan.output())}}, "", t.mismatches);
  return t;
}

/// The elements [start, stop) of a tensor, of which the first dimensions count.
inline local_box window_named(values& given, char of, std::size_t dims) {
  const integers extents = given.list(fmt::format("{}_global_shape", of));
  const integers start = given.list(fmt::format("{}_start", of)), stop = given.list(fmt::format("{}_stop", of));
  local_box b;
  for (std::size_t d = 0; d < dims; ++d) {
    const index_t n = extents.at(d), lo = start.at(d), hi = stop.at(d);
    if (lo < 0 || hi <= lo || hi > n) throw unbuilt(fmt::format("elements [{}, {}) of {}", lo, hi, n));
    engine::intervals held;
    held.push({lo, hi});
    b.extents.push(n);
    b.held.push(held);
  }
  return b;
}

/// The outputs of a window from the inputs of another, on one worker. The nearest neighbour with aligned corners must
/// be refused, and is taken without them then.
inline trial window_of_interpolation(test_case& c) {
  const index_t count = c.given.integer("dimension");
  if (count < 1 || count > 3) throw unbuilt(fmt::format("interpolation of {} dimensions", count));
  const auto dims = static_cast<std::size_t>(2 + count);
  windowed part{interpolation_of(c.given), {}};
  part.where.operands.push(window_named(c.given, 'x', dims));
  part.where.result = window_named(c.given, 'y', dims);
  for (std::size_t d = 2; d < dims; ++d) part.what.sizes.push(part.where.result.extents[static_cast<int>(d)]);
  const mesh_value one = grid_over({0}, integers(dims, 1), 'x');
  const auto lies = [&](const local_box& b) {
    integers n;
    for (int d = 0; d < b.held.count; ++d) n.push_back(b.size(d));
    return blocks_over(one, n);
  };
  layer_plan plan;
  plan.add_input(lies(part.where.operands[0]));
  plan.add_output(lies(part.where.result));
  const link asked{part, plan};
  const bool refused = !part.what.check().ok();
  if (refused) part.what.align_corners = false;
  trial t = run_layer(c, {part, plan});
  if (refused) t.faults.push_back({{asked}, {}});
  return t;
}

}  // namespace conformance
