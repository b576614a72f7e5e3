#pragma once

#include <tessera/topology/layout.hpp>

namespace tessera {

namespace engine {

/// The elements [lo, hi) of one dimension; empty when hi ≤ lo.
struct interval {
  index_t lo = 0;
  index_t hi = 0;

  constexpr index_t size() const { return hi > lo ? hi - lo : 0; }
  constexpr bool empty() const { return hi <= lo; }

  friend constexpr bool operator==(const interval&, const interval&) = default;
};

/// The elements that are in both.
constexpr interval overlap(const interval& a, const interval& b) {
  return {detail::larger(a.lo, b.lo), detail::smaller(a.hi, b.hi)};
}

/// The elements that one coordinate holds of one dimension: one interval by rule, two where a window runs around the
/// end.
using intervals = static_vector<interval, 2>;

/// How many elements intervals have that do not overlap.
constexpr index_t size_of(const intervals& held) {
  index_t n = 0;
  for (const auto& i : held) n += i.size();
  return n;
}

/// The elements that a worker holds: the product of its intervals, which lie in its memory in their order.
using holding = static_vector<intervals, max_dimensions>;

/// Where an element lies in memory among the intervals that hold it.
constexpr index_t position(const intervals& held, index_t element) {
  index_t before = 0;
  for (const interval& i : held) {
    if (element >= i.lo && element < i.hi) return before + element - i.lo;
    before += i.size();
  }
  return -1;
}

/// The inverse: the element that lies there.
constexpr index_t element_at(const intervals& held, index_t position) {
  int i = 0;
  while (position >= held[i].size()) position -= held[i++].size();
  return held[i].lo + position;
}

}  // namespace engine

/// One interval for each dimension, in global indices.
using box = static_vector<engine::interval, engine::max_dimensions>;

namespace engine {

/// The number of elements in a box; a box without dimensions holds one.
constexpr index_t volume(const box& b) {
  index_t n = 1;
  for (const auto& i : b) n *= i.size();
  return n;
}

}  // namespace engine

}  // namespace tessera
