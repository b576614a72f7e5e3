#pragma once
// Cases about DistDL's buffers. Here staging belongs to the exchanges of a team, so the counts have no counterpart;
// what the buffers serve is run: networks, and exchanges of the named shapes and element types whose results must stay
// as they were.

#include "layers.hpp"

#include <regex>

namespace conformance {

inline constexpr const char* no_buffers =
    "superset: staging belongs to the exchanges of a team, which has no buffers to count";

/// One step of a network on the tensor that `x` lies as.
inline link network_step(const std::string& words, const layout& x, values& partitions) {
  std::smatch part;
  const auto reads = [&](const char* pattern) { return std::regex_match(words, part, std::regex(pattern)); };
  const integers extents = extents_of(x);
  if (reads("Repartition (P_\\d+)->(P_\\d+)( \\(own buffers\\))?")) {
    values to(partitions.at(part[2]));
    std::vector<int> ranks;
    for (index_t r : to.list("ranks")) ranks.push_back(static_cast<int>(r));
    return change_of(x, blocks_over(grid_over(ranks, to.list("shape"), 'n'), extents));
  }
  if (reads("conv (\\d+)->(\\d+) k(\\d+) p(\\d+) no bias")) {
    contraction what;
    what.feature = 1;
    what.out = std::stoll(part[2]);
    what.bias = false;
    for (int d = 2; d < x.dims.count; ++d)
      what.kernels.push({std::stoll(part[3]), 1, std::stoll(part[4]), std::stoll(part[4]), 1});
    if (extents[1] != std::stoll(part[1])) throw unbuilt(fmt::format("'{}' on {} channels", words, extents[1]));
    return contraction_on(x, what);
  }
  throw unbuilt(fmt::format("the phrase '{}' is unknown", words));
}

inline trial network(test_case& c) {
  json steps = c.given.at("network");
  json partitions = c.given.has("partitions") ? c.given.at("partitions") : json();
  if (steps == "as conv2d network but both repartitions share the manager") {
    steps = {"Repartition P_1->P_22", "conv 1->5 k3 p1 no bias", "conv 5->10 k3 p1 no bias",
             "conv 10->20 k3 p1 no bias", "Repartition P_22->P_1"};
    partitions = {{"P_1", {{"ranks", {0}}, {"shape", {1, 1, 1, 1}}}},
                  {"P_22", {{"ranks", {0, 1, 2, 3}}, {"shape", {1, 1, 2, 2}}}}};
  }
  values grids(partitions);
  trial t;
  t.remark = no_buffers;
  layout x =
      network_step("Repartition P_1->P_1", whole(grid_over({0}, {1}, 'n'), c.given.list("x_global_shape")), grids)
          .plan.output();
  for (const json& step : steps) {
    t.links.push_back(network_step(step.get<std::string>(), x, grids));
    x = t.links.back().plan.output();
    t.workers = std::max(t.workers, world_of(x.mesh));
  }
  if (c.given.has("y_global_shape"))
    compare(c.given.at("y_global_shape"), extents_of(x), "y_global_shape ", t.mismatches);
  for (const char* counts : {"shared_buffer_manager", "float32_buffers_per_rank_after",
                             "float32_buffers_per_rank_after_each_conv", "after_backward"})
    c.given.has(counts);
  return t;
}

/// Every string in a list of steps, however deep.
inline void each_phrase(const json& of, std::vector<std::string>& all) {
  if (of.is_string()) all.push_back(of.get<std::string>());
  else if (of.is_structured())
    for (const json& inner : of) each_phrase(inner, all);
}

/// Steps of a buffer's life: exchanges of the shapes they name, and as many of an element type as they request.
inline trial buffer_steps(test_case& c) {
  static const std::set<std::string> only_counted{
      "new",        "no realloc", "realloc",     "6 held",  "0 dtypes", "6 float32 + 8 int32", "first 3 of the same 6",
      "capacity 0", "capacity 5", "capacity 24", "expand 5"};
  std::vector<std::string> phrases;
  each_phrase(c.given.at("steps"), phrases);
  const mesh_value pair = grid_over({0, 1}, {2}, 'n');
  std::vector<trial> all;
  const auto exchange = [&](const integers& shape, element e) {
    trial t;
    layout rows = whole(pair, shape);
    layout columns = rows;
    rows.cut_by(0, 0);
    columns.cut_by(columns.dims.count - 1, 0);
    run_change(t, rows, columns);
    t.element = e;
    t.backward = e == element::float32;
    t.asked = t.backward ? question::adjoint : question::element_kept;
    t.x = filling::ten_times_normal;
    all.push_back(t);
  };
  for (const std::string& words : phrases) {
    std::smatch part;
    const std::regex shape("\\[(\\d+), ?(\\d+), ?(\\d+)\\]");
    if (std::regex_match(words, part, std::regex("request (\\d+) (float32|int32)"))) {
      for (int i = 0; i < std::stoi(part[1]); ++i)
        exchange({4, 6}, part[2] == "int32" ? element::int32 : element::float32);
    } else if (std::regex_search(words, part, shape)) {
      exchange({std::stoll(part[1]), std::stoll(part[2]), std::stoll(part[3])}, element::float32);
    } else if (only_counted.count(words) == 0) {
      throw unbuilt(fmt::format("the phrase '{}' is unknown", words));
    }
  }
  if (all.empty()) throw unbuilt("steps that name no tensor");
  trial t = all.front();
  t.others.assign(all.begin() + 1, all.end());
  t.remark = no_buffers;
  return t;
}

inline trial buffers(test_case& c) { return c.given.has("network") ? network(c) : buffer_steps(c); }

}  // namespace conformance
