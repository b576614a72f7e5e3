#pragma once

#include <tessera/plan/interval.hpp>
#include <tessera/topology/window.hpp>

namespace tessera::engine {

/// The image of a window under its boundary: which of n elements it reads when it reaches over [need.lo, need.hi),
/// edges or not.
///
/// The image is one interval unless a periodic window runs around the end. Then the far part comes first: the image
/// lies in the order of reading.
constexpr intervals image(const interval& need, const window& w, index_t n) {
  const index_t low = w.unreached_before;
  const index_t high = n - w.unreached_after;
  intervals list;
  if (need.empty() || n == 0) {
    list.push({0, 0});
    return list;
  }
  if (w.edge == boundary::periodic) {
    if (need.size() >= n) {
      list.push({0, n});
      return list;
    }
    const index_t lo = need.lo - n * detail::floor_divide(need.lo, n);
    list.push({lo, detail::smaller(lo + need.size(), n)});
    if (lo + need.size() > n) list.push({0, lo + need.size() - n});
    return list;
  }
  if (w.edge == boundary::inward) {
    const index_t last = n - 1 - (w.b2 - w.b);  // where the last window begins
    list.push({detail::clamped(need.lo, 0, last), detail::clamped(need.hi - 1 - (w.b2 - w.b), 0, last) + n - last});
    return list;
  }
  interval held{detail::clamped(need.lo, low, high), detail::clamped(need.hi, low, high)};
  if (w.edge == boundary::replicate)
    held = {detail::clamped(need.lo, 0, n - 1), detail::clamped(need.hi - 1, 0, n - 1) + 1};
  if (w.edge == boundary::reflect) {
    const auto join = [&](index_t lo, index_t hi) {
      if (hi <= lo) return;
      held = held.empty() ? interval{lo, hi} : interval{detail::smaller(held.lo, lo), detail::larger(held.hi, hi)};
    };
    join(1 - detail::smaller(need.hi, 0), 1 - need.lo);
    join(2 * n - 1 - need.hi, 2 * n - 1 - detail::larger(need.lo, n));
    held = {detail::clamped(held.lo, 0, n), detail::clamped(held.hi, 0, n)};
  }
  list.push(held);
  return list;
}

/// The stretches of positions, edges included, that read an element of `wanted`: x is in the image of one that touches
/// them.
constexpr static_vector<interval, 3> preimages(const interval& wanted, const window& w, index_t n, index_t outputs) {
  static_vector<interval, 3> list;
  list.push(wanted);
  const interval all{w.first(0), w.last(outputs - 1) + 1};
  switch (w.edge) {
    case boundary::zero: break;
    case boundary::replicate:
      if (wanted.lo == 0) list[0].lo = detail::smaller(0, all.lo);
      if (wanted.hi == n) list[0].hi = detail::larger(n, all.hi);
      break;
    case boundary::inward:  // the first windows are one, and the last ones
      if (wanted.lo <= w.b2 - w.b) list[0].lo = detail::smaller(0, all.lo);
      if (wanted.hi >= n - (w.b2 - w.b)) list[0].hi = detail::larger(n, all.hi);
      break;
    case boundary::reflect:
      list.push({1 - wanted.hi, 1 - wanted.lo});
      list.push({2 * n - 1 - wanted.hi, 2 * n - 1 - wanted.lo});
      break;
    case boundary::periodic:
      if (all.lo < -n || all.hi > 2 * n) {
        list[0] = all;  // more than one turn: everything may read it
        break;
      }
      list.push({wanted.lo - n, wanted.hi - n});
      list.push({wanted.lo + n, wanted.hi + n});
      break;
  }
  return list;
}

}  // namespace tessera::engine
