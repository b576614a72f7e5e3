#pragma once
// Embedding: rows of a table whose columns the last axis cuts.

#include "layers.hpp"

namespace conformance {

/// The indices are copies on all workers. Both forms of DistDL are one subject: the table stored as copies over the
/// other axes, and as a tiling over them (ZeRO).
inline trial embedding(test_case& c) {
  const mesh_value grid = grid_of(c.given, "P_x", 'x');
  const integers table = c.given.list("embedding_shape");
  if (table.size() != 2 || !c.given.has("input"))
    throw unbuilt("a table of other than rows and columns, or nothing to look up");
  lookup rows;
  rows.rows = table[0];
  rows.features = table[1];
  rows.cut_out.push(grid.axes[grid.axes.count - 1].name);
  const link l = planned(rows, plan_of(rows, {whole(grid, {table[0]}), element::int64}));
  link zero = l;
  store_as_tiling(zero.plan, 0);
  trial t = run_layer(c, l);
  t.alike.push_back({zero});
  return t;
}

}  // namespace conformance
