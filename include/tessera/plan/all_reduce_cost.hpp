#pragma once

#include <tessera/plan/phase.hpp>

#include <initializer_list>

namespace tessera {

namespace detail {

// Whether a change only gives axes another placement, and makes no terms: then it is free but for the terms that it
// adds up, an all_reduce. Dimensions are cut evenly, by single elements.
constexpr bool only_reduces(const layout& from, const layout& to) {
  if (workers_adding(from, to) == 0 || from.dims.count != to.dims.count) return false;
  for (int d = 0; d < from.dims.count; ++d)
    for (const dimension* x : {&from.dims[d], &to.dims[d]})
      if (x->kind != cover::tiled || !x->in_order() || x->glued != 0 || x->extent != from.dims[d].extent) return false;
  return true;
}

// What such a change moves, in closed form.
//
// When p workers add up a box, each gets a tile of it, along the dimensions that are shared most evenly at the time
// (`spread`). It receives p − 1 terms of its tile, then the rest of the box; of two, the other's box.
constexpr cost reduction_cost(const layout& from, const layout& to) {
  const index_t workers = workers_adding(from, to);  // that add up one box
  if (workers == 2) return boxes_cost(to);
  index_t copies = 1;  // of all that
  index_t boxes[max_dimensions]{};
  index_t tiles[max_dimensions]{};  // in each box
  for (int d = 0; d < from.dims.count; ++d) {
    boxes[d] = from.part_count(d);
    tiles[d] = 1;
  }
  bool held = false;  // by one coordinate: what is too small to be cut
  for (int a = 0; a < from.placements.count; ++a) {
    const index_t p = from.mesh.axes[a].extent;
    if (p == 1 || from.placements[a].kind == placement::cut || from.placements[a].kind == placement::on) continue;
    if (from.placements[a] == to.placements[a] || from.placements[a].kind != placement::partial) {
      copies *= p;
      continue;
    }
    int best = -1;
    double least = 2;
    for (int d = 0; d < from.dims.count; ++d)
      if (const double largest = largest_over_whole(from.dims[d].extent / (boxes[d] * tiles[d]), p); largest < least) {
        least = largest;
        best = d;
      }
    if (best < 0) held = true;
    else tiles[best] *= p;
  }
  cost c;
  if (workers == 1) return c;
  index_t elements = 1;
  index_t largest_tile = 1;
  index_t largest_box = 1;
  index_t smallest_tile = held ? 0 : 1;  // of the largest box
  index_t with_elements = 1;             // tiles
  index_t in_largest_box = 1;
  for (int d = 0; d < from.dims.count; ++d) {
    const index_t n = from.dims[d].extent;
    const index_t local = ceil_divide(n, boxes[d]);
    elements *= n;
    largest_tile *= ceil_divide(n, boxes[d] * tiles[d]);
    largest_box *= local;
    smallest_tile *= local / tiles[d];
    with_elements *= smaller(n, boxes[d] * tiles[d]);
    in_largest_box *= smaller(local, tiles[d]);
  }
  const index_t others = workers - 1;
  c.total = c.lower_bound = capped_product(elements, capped_product(2 * others, copies));
  c.busiest = capped_sum(capped_product(largest_tile, others), largest_box - smallest_tile);
  c.messages = capped_product(capped_product(2 * others, copies), with_elements);
  c.busiest_messages = (with_elements > 0 ? others : 0) + smaller(in_largest_box, others);
  return c;
}

}  // namespace detail

namespace engine {

/// The cost of a change of layout; of an all_reduce, which every parameter's gradient is, in closed form.
constexpr cost cost_between(const layout& from, const layout& to) {
  return detail::only_reduces(from, to) ? detail::reduction_cost(from, to) : cost_of(change_between(from, to));
}

}  // namespace engine

}  // namespace tessera
