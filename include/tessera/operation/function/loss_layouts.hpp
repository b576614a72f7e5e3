#pragma once

#include <tessera/operation/function/element_by_element.hpp>
#include <tessera/operation/function/reductions.hpp>

namespace tessera::functions::detail {

/// The layout of one number a sample; the axes that cut the classes, dimension 1, get another placement.
constexpr layout per_sample(const layout& x, const axis_placement& classes) {
  layout y;
  y.mesh = x.mesh;
  for (int d = 0; d < x.dims.count; ++d)
    if (d != 1) y.dims.push(x.dims[d]);
  for (axis_placement r : x.placements) {
    if (r.kind == placement::cut && r.dimension == 1) r = classes;
    else if (r.kind == placement::cut && r.dimension > 1) --r.dimension;
    y.placements.push(r);
  }
  return y;
}

/// A few numbers in place of each, side by side: one exchange serves them all.
constexpr layout in_rows(const layout& x, index_t count) {
  layout y;
  y.mesh = x.mesh;
  y.dims.push({});
  y.dims[0].extent = count;
  for (const dimension& d : x.dims) y.dims.push(d);
  for (axis_placement r : x.placements) {
    if (r.kind == placement::cut) ++r.dimension;
    y.placements.push(r);
  }
  return y;
}

/// The sums of a few numbers over all elements, which every worker gets.
constexpr exchange_value summing(const layout& each, index_t rows) {
  layout terms = one_number(each);
  const layout all = in_rows(terms, rows);
  for (int a = 0; a < each.placements.count; ++a)
    terms.placements[a] =
        each.placements[a].kind == placement::cut ? axis_placement{placement::partial} : each.placements[a];
  return {in_rows(terms, rows), all, element::float64};
}

constexpr element wide(element e) { return bytes_of(e) < bytes_of(element::float32) ? element::float32 : e; }

/// The exchange of a few numbers a sample, of each of which workers have terms where the classes are cut.
constexpr exchange_value over_classes(const tensor_value& x, index_t rows) {
  return {in_rows(per_sample(x.layout, {placement::partial}), rows),
          in_rows(per_sample(x.layout, {placement::invariant}), rows), wide(x.element)};
}

/// Refuses a sum over elements that some worker has twice.
constexpr refusal check_sums(const signature& op, const layout& x) {
  static_vector<operand, 4> one = no_items<operand, 4>;
  one.push({x, false});
  return infer(op, one).why;
}

}  // namespace tessera::functions::detail
