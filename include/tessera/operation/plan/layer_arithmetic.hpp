#pragma once

#include <tessera/operation/plan/arithmetic.hpp>
#include <tessera/operation/plan/exchange_traffic.hpp>
#include <tessera/plan/parts.hpp>

namespace tessera {

namespace detail {

/// A number of elements or operations: of all workers together, and of the one that has most.
struct shared_count {
  index_t total = 1;
  index_t most = 1;

  constexpr shared_count& operator*=(const shared_count& o) {
    total = capped_product(total, o.total);
    most = capped_product(most, o.most);
    return *this;
  }
};

/// The pairs (i, j), i in [a, b) and j in [i − before, i + after] ∩ [0, n): arithmetic series on both sides.
constexpr index_t pairs_seen(const interval& queries, index_t n, index_t before, index_t after) {
  if (queries.empty()) return 0;
  const auto series = [](index_t first, index_t count) { return count * first + count * (count - 1) / 2; };
  const auto within = [&](index_t at) { return smaller(larger(at, queries.lo), queries.hi); };
  const index_t full = within(n - after);  // queries from here on see keys up to the last
  const index_t far = within(before);      // queries from here on do not see the first
  const index_t up_to = series(capped_sum(queries.lo + 1, after), full - queries.lo) + (queries.hi - full) * n;
  return up_to - series(far - before, queries.hi - far);
}

/// What `count` says of the intervals that each part of a dimension has, over all parts and the largest of them.
template <class Count>
constexpr shared_count over_parts(const layout& x, int d, const Count& count) {
  const parts all(x, d);
  shared_count n{0, 0};
  for (int k = 0; k < all.count(); ++k) {
    index_t here = 0;
    for (const interval& one : all.held(k)) here = capped_sum(here, count(one));
    n.total = capped_sum(n.total, here);
    n.most = larger(n.most, here);
  }
  return n;
}

/// The elements that workers hold along a dimension. Parts of lengths that only run time learns count as equal ones.
constexpr shared_count held_along(const layout& x, int d) {
  const dimension& dim = x.dims[d];
  if (dim.kind != cover::tiled) return over_parts(x, d, [](const interval& i) { return i.size(); });
  if (dim.bounds == learned) return {dim.extent, ceil_divide(dim.extent, x.part_count(d))};
  return {dim.extent, x.levels(d) == 0 ? dim.extent : parts(x, d).largest()};
}

/// Multiply-adds of a product on the workers: axes that cut none of its dimensions have it once on each coordinate.
constexpr shared_count work_of_product(const layer_plan& p, const counted_product& by) {
  shared_count all;
  unsigned cut = 0;
  for (int f = 0; f < by.count; ++f) {
    const layout& x = p.layout_of(by.of[f]);
    for (int d = 0; d < x.dims.count; ++d) {
      if ((by.of[f].dims >> d & 1u) == 0) continue;
      const index_t n = x.dims[d].extent;
      all *= f == 0 && d == by.queries
                 ? over_parts(x, d, [&](const interval& i) { return pairs_seen(i, n, by.before, by.after); })
                 : held_along(x, d);
      for (int a = 0; a < x.placements.count; ++a)
        if (x.placements[a].kind == placement::cut && x.placements[a].dimension == d) cut |= 1u << a;
    }
  }
  if (by.count == 0) return {0, 0};
  const layout& first = p.layout_of(by.of[0]);
  for (int a = 0; a < first.placements.count; ++a)
    if ((cut >> a & 1u) == 0 && first.placements[a].kind != placement::on) all *= {first.mesh.axes[a].extent, 1};
  index_t times = by.times;
  if (by.lengths != 0) {
    index_t logarithms = 0;
    for (int d = 0; d < first.dims.count; ++d)
      for (index_t n = 1; (by.lengths >> d & 1u) != 0 && n < first.dims[d].extent; n *= 2) ++logarithms;
    times = capped_product(times, logarithms);
  }
  all *= {times, times};
  const auto divided = [&](index_t n) { return n == INT64_MAX ? n : n / by.per; };
  return {divided(all.total), divided(all.most)};
}

/// The elements of the largest tensor that a layer without products takes or gives; none of one that computes nothing.
constexpr index_t largest_of(const layer_plan& p) {
  if (p.outputs() == 0 || (p.saves.view && p.saves.passes)) return 0;
  index_t most = 0;
  const auto count = [&](const held_extents& x) {
    most = larger(most, work_of_product(p, counted_product({x}, 1)).most);
  };
  for (int i = 0; i < p.inputs(); ++i) count(p.used_extents(i));
  for (int i = 0; i < p.outputs(); ++i) count(p.raw_extents(i));
  return most;
}

}  // namespace detail

namespace engine {

/// Gives all extents that only run time knows one value.
constexpr void bind_rows(layout& x, index_t rows) {
  for (dimension& d : x.dims)
    if (d.extent == dynamic) d.extent = rows;
}
constexpr void bind_rows(layer_plan& p, index_t rows) {
  p.each_layout([rows](layout& x) { bind_rows(x, rows); });
}

/// The arithmetic of a layer whose operands have these elements, and whose extents are known. A multiply-add of complex
/// numbers is four of real ones.
constexpr arithmetic_value arithmetic_of(const layer_plan& p, const operand_elements& e) {
  arithmetic_value all;
  bool returns = false;
  for (int i = 0; i < p.outputs(); ++i) returns = returns || has_cotangent(p.element_of(i, e[0]));
  for (int i = 0; i < p.products(); ++i) {
    const counted_product& by = p.product(i);
    const detail::shared_count n = detail::work_of_product(p, by);
    const operations one = operations{n.total, n.most} * (is_complex(e[0]) && by.lengths == 0 ? 4 : 1);
    all.forward += one;
    if (returns) all.backward += one * by.back;
  }
  if (p.products() > 0) return all;
  all.forward.elements = detail::largest_of(p);
  if (returns) all.backward.elements = all.forward.elements;
  return all;
}

}  // namespace engine

}  // namespace tessera
