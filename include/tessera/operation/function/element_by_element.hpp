#pragma once

#include <tessera/operation/plan/function.hpp>

namespace tessera::functions {

namespace detail {

using namespace engine;

// Whether a dimension of one element is repeated for an operand that has more of them, or has them cut.
constexpr bool repeated(const layout& x, int dim, const layout& other, int at) {
  if (x.dims[dim].extent != 1 || x.part_count(dim) > 1 || at < 0) return false;
  const bool one_extent = x.dims[dim].tag.size > 0 && x.dims[dim].tag == other.dims[at].tag;
  return !one_extent && (other.dims[at].extent != 1 || other.part_count(at) > 1);
}

// Of all dimensions but so many at the end.
constexpr signature element_by_element(linearity kind, const layout* const* x, int count, int without = 0) {
  signature s;
  s.kind = kind;
  int most = 0;
  for (int o = 0; o < count; ++o)
    if (x[o]->dims.count - without > most) most = x[o]->dims.count - without;
  s.result = letters_of(most);
  for (int o = 0; o < count; ++o) {
    const int lacking = most - x[o]->dims.count + without;
    letters own;
    for (int d = 0; d < x[o]->dims.count - without; ++d) {
      bool once = false;
      for (int other = 0; other < count; ++other)
        once = once || repeated(*x[o], d, *x[other], d + lacking - most + x[other]->dims.count - without);
      own.push(static_cast<char>((once ? 'A' : 'a') + lacking + d));
    }
    s.operands.push(own);
  }
  return s;
}

}  // namespace detail

namespace engine {

/// The signature of a function that acts element by element. Dimensions are compared from the last one on; an operand
/// that lacks some, or has one uncut element there, is repeated along them.
template <class... Layouts>
constexpr signature element_by_element(linearity kind, const Layouts&... x) {
  const layout* const all[]{&x...};
  return detail::element_by_element(kind, all, sizeof...(x));
}

}  // namespace engine

}  // namespace tessera::functions
