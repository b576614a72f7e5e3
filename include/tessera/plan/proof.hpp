#pragma once

#include <tessera/meta/indices.hpp>
#include <tessera/meta/integer.hpp>
#include <tessera/plan/cut.hpp>

namespace tessera::engine::laws {

/// Parts first … last − 1 of n items over p lie end to end and `owner` finds each: the part of the proof for one
/// stretch.
constexpr bool tiles(index_t n, index_t p, index_t first, index_t last) {
  for (index_t i = first; i < last; ++i) {
    const index_t lo = cut(n, p, i);
    const index_t hi = cut(n, p, i + 1);
    if (hi < lo || lo < 0 || hi > n) return false;
    if (hi > lo && (owner(n, p, lo) != i || owner(n, p, hi - 1) != i)) return false;
  }
  return cut(n, p, 0) == 0 && cut(n, p, p) == n;
}

namespace detail {

inline constexpr index_t stretch = 8192;  // workers a constant expression looks at: within every compiler's limits

template <index_t N, index_t P, index_t First>
inline constexpr bool stretch_tiles = tiles(N, P, First, tessera::detail::smaller(P, First + stretch));

template <index_t N, index_t P, int... I>
constexpr bool all_stretches(tessera::detail::indices<I...>) {
  return (stretch_tiles<N, P, I * stretch> && ...);
}

}  // namespace detail

/// Proves while compiling that n items over p parts are a tiling; one proof serves every plan that cuts n by p.
///
/// A layout is a product of such cuts over its dimensions: it holds each element once. A plan is a product of overlaps
/// of such cuts, found by `owner`: it delivers each element once.
template <index_t N, index_t P>
inline constexpr bool proved =
    detail::all_stretches<N, P>(tessera::detail::indices_below<(P + detail::stretch - 1) / detail::stretch>{});

}  // namespace tessera::engine::laws
