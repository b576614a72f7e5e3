#pragma once
// Broadcast, SumReduce, AllSumReduce, AllGather, ReduceScatter, Repartition and HaloExchange as changes of layout.

#include "partitions.hpp"
#include "phrases.hpp"

namespace conformance {

/// The case is one change of layout.
inline void run_change(trial& t, const layout& from, const layout& to) {
  t.links = {change_of(from, to)};
  t.workers = std::max({t.workers, world_of(from.mesh), world_of(to.mesh)});
}

/// Every worker's own tensor of this shape, stacked: one more dimension K in front, cut jointly by the named axes.
inline layout stacked(const mesh_value& mesh, const std::vector<int>& axes, const integers& shape,
                      engine::axis_placement others = {}) {
  integers all{1};
  all.insert(all.end(), shape.begin(), shape.end());
  layout x = whole(mesh, all);
  for (auto& r : x.placements) r = others;
  for (int a : axes) {
    x.dims[0].extent *= mesh.axes[a].extent;
    x.cut_by(0, a);
  }
  return x;
}

/// The axes of two grids that a broadcast pairs: shapes end together, a flagged one read backwards; equal extents
/// match.
struct pairing_of_axes {
  std::vector<int> few;   ///< of the smaller grid, in its own order
  std::vector<int> many;  ///< of the larger one
};
inline pairing_of_axes pair_axes(const mesh_value& few, bool few_reversed, const mesh_value& many, bool many_reversed) {
  const auto from_end = [](const mesh_value& m, bool reversed, int i) { return reversed ? i : m.axes.count - 1 - i; };
  pairing_of_axes p;
  for (int i = 0; i < few.axes.count; ++i) p.few.push_back(i);
  for (int i = 0; i < std::min(few.axes.count, many.axes.count); ++i) {
    const int a = from_end(few, few_reversed, i);
    const int b = from_end(many, many_reversed, i);
    if (few.axes[a].extent == many.axes[b].extent) p.many.push_back(b);
  }
  std::sort(p.many.begin(), p.many.end());
  return p;
}

/// Broadcast and SumReduce: the smaller grid holds K tensors, the larger one copies or terms of them. An illegal pair
/// of grids shows as two different K.
inline std::pair<layout, layout> spread(const mesh_value& from, const mesh_value& to, bool src, bool dst,
                                        const integers& shape, bool to_many) {
  if (to_many) {
    const auto p = pair_axes(from, src, to, dst);
    return {stacked(from, p.few, shape), stacked(to, p.many, shape)};
  }
  const auto p = pair_axes(to, dst, from, src);
  return {stacked(from, p.many, shape, {placement::partial}), stacked(to, p.few, shape)};
}

/// A grid whose shape pairs with `few`, the larger grid's own shape where it already does: the fault mended.
inline integers mended(const integers& few, bool few_reversed, integers many, bool many_reversed) {
  integers s = few;
  if (few_reversed) std::reverse(s.begin(), s.end());
  if (many_reversed) std::reverse(many.begin(), many.end());
  if (many.size() < s.size()) many.insert(many.begin(), s.begin(), s.end() - static_cast<std::ptrdiff_t>(many.size()));
  for (std::size_t i = 1; i <= s.size(); ++i)
    if (s[s.size() - i] != 1) many[many.size() - i] = s[s.size() - i];
  if (many_reversed) std::reverse(many.begin(), many.end());
  return many;
}

/// Groups that the file lists under any of its names.
inline void compare_groups(test_case& c, const json& ours, trial& t) {
  for (json* theirs : {&c.derived, &c.expected})
    if (theirs->is_object()) compare(taken(*theirs), ours, "", t.mismatches);
}

inline trial broadcast_like(test_case& c, bool to_many) {
  trial t;
  const std::string target = c.given.has("P_y_shape") ? "P_y" : "P_w";
  const mesh_value from = grid_of(c.given, "P_x", 'x');
  const mesh_value to = grid_of(c.given, target, 'y');
  const bool src = c.given.flag("transpose_src");
  const bool dst = c.given.flag("transpose_dest");
  const integers shape = c.given.has("x_global_shape") ? c.given.list("x_global_shape") : integers{2};
  auto [x, y] = spread(from, to, src, dst, shape, to_many);
  if (c.kind == "must_reject") {
    t.faults.push_back({{change_of(x, y)}, {}});
    t.workers = std::max(world_of(from), world_of(to));
    const integers few = c.given.list(to_many ? "P_x_shape" : target + "_shape");
    const integers many =
        mended(few, to_many ? src : dst, c.given.list(to_many ? target + "_shape" : "P_x_shape"), to_many ? dst : src);
    std::vector<int> ranks(static_cast<std::size_t>(volume_of(many)));
    std::iota(ranks.begin(), ranks.end(), 0);
    const mesh_value other = grid_over(ranks, many, 'z');
    std::tie(x, y) = to_many ? spread(from, other, src, dst, shape, true) : spread(other, to, src, dst, shape, false);
  }
  run_change(t, x, y);
  compare_groups(c, broadcast_groups(x, y, to_many), t);
  return t;
}

inline trial all_sum_reduce(test_case& c) {
  trial t;
  const mesh_value grid = grid_of(c.given, "P_x", 'x');
  const bool keeps = c.given.has("axes_keep");
  const integers named = c.given.list(keeps ? "axes_keep" : "axes_reduce");
  for (index_t axis : named)
    if (axis < 0 || axis >= grid.axes.count) throw unbuilt(fmt::format("axis {} of {}", axis, grid.axes.count));
  std::vector<int> kept_axes;
  for (int a = 0; a < grid.axes.count; ++a)
    if ((std::find(named.begin(), named.end(), a) != named.end()) == keeps) kept_axes.push_back(a);
  const integers shape = c.given.has("x_global_shape") ? c.given.list("x_global_shape") : integers{2};
  const layout terms = stacked(grid, kept_axes, shape, {placement::partial});
  const layout sums = stacked(grid, kept_axes, shape);
  run_change(t, terms, sums);
  if (c.expected.is_object() && c.expected.contains("y_every_entry")) {
    t.every_y = number_named(c.expected.at("y_every_entry"));
    t.every_dx = number_named(c.expected.at("dx_every_entry"));
    for (const auto& [name, value] : c.expected.items())
      if (name != "y_every_entry" && name != "dx_every_entry" && !(name == "exact" && value == true))
        throw unbuilt(fmt::format("the expectation '{}' is unknown", name));
    taken(c.expected);
  }
  compare_groups(c, {{"groups", connected_groups(terms, sums)}}, t);
  return t;
}

/// AllGather and ReduceScatter: along the named axes every worker holds the whole dimension, as a copy or as a term.
inline trial along_axes(test_case& c, bool gathers) {
  trial t;
  const mesh_value grid = grid_of(c.given, "P_x", 'x');
  const integers axes = c.given.list(gathers ? "axes_gather" : "axes_reduce_scatter");
  const layout parts = blocks_over(grid, c.given.list(gathers ? "x_global_shape" : "y_global_shape"));
  layout all = parts;
  integers counted = extents_of(parts);  // the file counts every copy or term of a whole dimension
  index_t group = 1;
  index_t remainder = 0;
  for (index_t axis : axes) {
    if (axis < 0 || axis >= grid.axes.count) throw unbuilt(fmt::format("axis {} of {}", axis, grid.axes.count));
    const auto a = static_cast<int>(axis);
    all.set_placement(a, {gathers ? placement::replicate : placement::partial});
    counted[static_cast<std::size_t>(a)] *= grid.axes[a].extent;
    group *= grid.axes[a].extent;
    remainder = parts.dims[a].extent % grid.axes[a].extent;
  }
  run_change(t, gathers ? parts : all, gathers ? all : parts);

  compare(c.given.at(gathers ? "y_global_shape" : "x_global_shape"), counted, "the shape of all copies ", t.mismatches);
  if (!c.derived.is_object()) return t;
  json workers = json::array();
  for (int i = 0; i < grid.size(); ++i) {
    const coordinates at = grid.at(i);
    workers.push_back({{"index", std::vector<int>(at.begin(), at.end())},
                       {"x_local", extents_of(box_of(t.links[0].plan.given(), grid.rank(at)))},
                       {"y_local", extents_of(box_of(t.links[0].plan.output(), grid.rank(at)))}});
  }
  json theirs = taken(c.derived);
  if (theirs.contains("per_rank")) compare_workers(theirs.at("per_rank"), workers, t.mismatches);
  theirs.erase("per_rank");
  compare(theirs, {{"group_size", group}, {"remainder", remainder}}, "", t.mismatches);
  return t;
}

inline trial repartition(test_case& c) {
  trial t;
  if (c.check.has("type") && c.check.text("type") == "same_type") {  // another name of the same change
    if (c.check.text("a") != "DistributedTranspose" || c.check.text("b") != "Repartition")
      throw unbuilt("two types that are not known");
    const mesh_value one = grid_over({0}, {1, 1}, 'x');
    run_change(t, blocks_over(one, {2, 3}), blocks_over(one, {2, 3}));
    return t;
  }
  const bool alike = c.given.has("P_y") && c.given.text("P_y") == "same object as P_x";
  const mesh_value from = grid_of(c.given, "P_x", 'x');
  const mesh_value to = alike ? from : grid_of(c.given, "P_y", 'y');
  const integers shape = c.given.list("x_global_shape");
  const int rank = static_cast<int>(shape.size());
  const bool balanced = c.given.flag("balanced", true);
  if (c.given.has("unbalanced_rule") &&
      c.given.text("unbalanced_rule") != "index 0 of every axis takes the whole remainder")
    throw unbuilt("an unknown rule for unbalanced tensors");
  const layout x = balanced ? blocks_over(from, shape) : heavy_first(blocks_over(from, shape));
  const layout y = blocks_over(to, shape);
  if (c.kind == "must_reject" && (from.axes.count != rank || to.axes.count != rank)) {
    const auto one_each = [&](const mesh_value& m) {  // a partition of the file has one axis for each dimension
      integers cut = shape;
      cut.resize(static_cast<std::size_t>(m.axes.count), 1);
      return blocks_over(m, cut);
    };
    t.faults.push_back(
        {{change_of(one_each(from), one_each(to))}, from.axes.count == rank ? integers{} : integers(shape.size(), 1)});
    const integers wider = [&] {
      integers all = shape;
      while (static_cast<int>(all.size()) < std::max(from.axes.count, to.axes.count)) all.push_back(4);
      return all;
    }();
    const auto widened = [&](mesh_value m) {  // the fault mended: as many axes as the tensor has dimensions
      while (m.axes.count < static_cast<int>(wider.size()))
        m.axes.push({axis_name('z', static_cast<std::size_t>(m.axes.count)), 1, 1});
      return m;
    };
    run_change(t, blocks_over(widened(from), wider), blocks_over(widened(to), wider));
    return t;
  }
  run_change(t, x, y);
  if (c.kind == "must_reject") {
    bool idle = false;
    for (const layout* side : {&x, &y})
      for (int a = 0; a < side->mesh.axes.count; ++a) idle = idle || side->dims[a].extent < side->mesh.axes[a].extent;
    if (idle) t.remark = "superset: more workers than elements, the others hold nothing";
    else t.faults.push_back({{change_of(x, y)}, {}});
  }
  const json ours = overlaps_of(x, y);
  if (c.given.has("expect_if_balanced")) {
    if (c.given.text("expect_if_balanced") != "no partner other than self in any overlap list")
      throw unbuilt("an unknown expectation");
    if (balanced && ours.at("n_messages") != 0) t.mismatches.push_back("something moves between equal partitions");
  }
  if (c.derived.is_object()) {
    json theirs = taken(c.derived);
    if (theirs.contains("overlaps")) std::sort(theirs["overlaps"].begin(), theirs["overlaps"].end());
    compare(theirs, ours, "", t.mismatches);
  }
  return t;
}

/// n items over P workers.
inline trial decomposition(test_case& c) {
  trial t;
  const layout x = blocks_over(grid_over(
                                   [&] {
                                     std::vector<int> ranks(static_cast<std::size_t>(c.given.integer("P")));
                                     std::iota(ranks.begin(), ranks.end(), 0);
                                     return ranks;
                                   }(),
                                   {c.given.integer("P")}, 'x'),
                               {c.given.integer("n")});
  json sizes = json::array();
  json starts = json::array();
  for (int r = 0; r < x.mesh.size(); ++r) {
    sizes.push_back(box_of(x, r)[0].size());
    starts.push_back(box_of(x, r)[0].lo);
  }
  run_change(t, x, whole(x.mesh, {c.given.integer("n")}));
  compare_groups(c, {{"sizes", sizes}, {"starts", starts}}, t);
  return t;
}

}  // namespace conformance
