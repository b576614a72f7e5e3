#pragma once

#include <tessera/meta/integer.hpp>

#include <initializer_list>

namespace tessera::engine {

/// Dimensions of a layout that a plan has: bit d of `dims` is dimension d. As many elements as a worker holds of them.
struct held_extents {
  signed char at = 0;  ///< the layout's number in the plan
  unsigned dims = 0xffff;

  /// The same without a dimension.
  constexpr held_extents without(int d) const { return {at, dims & ~(1u << d)}; }
  /// This dimension alone.
  constexpr held_extents only(int d) const { return {at, 1u << d}; }
};

/// Multiply-adds of a local operation on a worker: times / per · Π of the extents that it holds.
struct counted_product {
  static constexpr int most = 5;

  held_extents of[most];
  signed char count = 0;
  signed char back = 2;  ///< how often as many are made in backward: once for the gradient of each operand
  /// a dimension of the first layout, of places that count the keys which they see of its extent; −1: none
  signed char queries = -1;
  unsigned lengths = 0;  ///< dimensions of the first layout whose ⌈log₂ n⌉ are added, as transforms of them take
  index_t times = 1;
  index_t per = 1;
  /// a query at i sees the keys of [i − before, i + after]
  index_t before = 0;
  index_t after = 0;

  constexpr counted_product() = default;
  constexpr counted_product(std::initializer_list<held_extents> all, index_t each) : times(each) {
    for (const held_extents& one : all) of[count++] = one;
  }
};

}  // namespace tessera::engine
