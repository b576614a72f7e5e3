#pragma once
// Halo exchanges and the windows of convolution and pooling.

#include "primitives.hpp"

namespace conformance {

/// The windows of a case over the last dimensions of a tensor of this rank.
inline windows windows_of(values& given, std::size_t rank) {
  std::size_t count = given.at("kernel_size").is_array() ? given.at("kernel_size").size() : rank - 2;
  if (given.has("input_dimensions")) count = static_cast<std::size_t>(given.integer("input_dimensions"));
  if (count > rank) throw unbuilt("a kernel of more dimensions than its tensor");
  const integers kernel = given.each("kernel_size", count, 1);
  const integers stride = given.each("stride", count, 1);
  const integers padding = given.each("padding", count, 0);
  const integers dilation = given.each("dilation", count, 1);
  windows all(rank, sliding{1, 1, 0, 0, 1});
  for (std::size_t i = 0; i < count; ++i)
    all[rank - count + i] = {kernel[i], stride[i], padding[i], padding[i], dilation[i]};
  return all;
}

inline trial halo_exchange(test_case& c) {
  trial t;
  const layout tiles = blocks_over(grid_of(c.given, "P_x", 'x'), c.given.list("x_global_shape"));
  const windows of = windows_of(c.given, static_cast<std::size_t>(tiles.dims.count));
  const layout haloed = hold(tiles, of);
  run_change(t, tiles, haloed);
  const json ours = halos_of(tiles, haloed, of);
  if (c.derived.is_object()) {
    json theirs = taken(c.derived);
    if (theirs.contains("per_rank")) compare_workers(theirs.at("per_rank"), ours, t.mismatches);
    theirs.erase("per_rank");
    compare(theirs, json::object(), "", t.mismatches);
  }
  if (c.expected.is_array())
    for (const json& one : taken(c.expected)) {
      if (one.at("rank") != "inactive") compare_workers(json::array({one}), ours, t.mismatches);
      else
        for (const auto& [name, value] : one.items())  // a worker outside holds nothing
          if (name != "rank" && !value.is_null())
            t.mismatches.push_back(fmt::format("a worker outside has '{}'", name));
    }
  return t;
}

}  // namespace conformance
