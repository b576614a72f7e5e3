#pragma once

#include <tessera/operation/rule/infer.hpp>

namespace tessera::detail {

constexpr letters in_two(const letters& one, int dim) {
  letters two;
  for (int d = 0; d < one.count; ++d) {
    two.push(d == dim ? 'G' : one[d]);
    if (d == dim) two.push('F');
  }
  return two;
}
constexpr inferred reshaped(const layout& x, const letters& from, const letters& to, signature s) {
  s.kind = linearity::additive;
  s.operands.push(from);
  s.result = to;
  static_vector<operand, 4> one = no_items<operand, 4>;
  one.push({x, false});
  return infer(s, one);
}

/// A layout whose dimension is two, [n] → [n / inner, inner], and the one that has two as one again.
constexpr inferred split_in_two(const layout& x, int dim, index_t inner) {
  const letters one = letters_of(x.dims.count);
  return reshaped(x, one, in_two(one, dim), signature{}.split(one[dim], 'G', 'F', inner));
}
constexpr inferred merged_from_two(const layout& x, int dim) {
  const letters one = letters_of(x.dims.count - 1);
  return reshaped(x, in_two(one, dim), one, signature{}.merged("GF", one[dim]));
}

/// One where a dimension has one element for each `inner` of it: of those that become one, an operation puts the others
/// elsewhere.
constexpr inferred outer_part(const layout& x, int dim, index_t inner) {
  const inferred two = split_in_two(x, dim, inner);
  if (!two.why.ok()) return two;
  letters outer = letters_of(x.dims.count);
  const letters both = in_two(outer, dim);
  outer[dim] = 'G';
  return reshaped(two.layout, both, outer, {});
}

/// Lets a cut dimension be a tiling whose parts are whole runs of so many elements; one that is stays as it is. Whether
/// an extent comes out even that its type does not know is not asked, so that the cut is that of the type.
constexpr refusal hold_together(layout& x, int d, index_t run) {
  dimension& dim = x.dims[d];
  dimension typed = dim;
  if (!dim.has_static_extent()) typed.extent = dynamic;
  if (x.levels(d) == 0 || splits(typed, run, x.part_count(d))) return {};
  if (dim.bounds == learned) return refusal{code::lengths_not_known, d};
  dim.tile();
  dim.balance(run);
  return {};
}

}  // namespace tessera::detail
