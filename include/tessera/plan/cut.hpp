#pragma once

#include <tessera/meta/integer.hpp>

namespace tessera {

/// Where part i of n items over p parts begins: cut(n, p, i) = i·⌊n/p⌋ + min(i, n mod p).
///
/// Part i is [cut(i), cut(i + 1)): the first n mod p parts get one item more. Everything else, plans and proofs alike,
/// calls this one function.
constexpr index_t cut(index_t n, index_t p, index_t i) { return i * (n / p) + detail::smaller(i, n % p); }

namespace engine {

/// The part that holds item x: cut(n, p, owner) ≤ x < cut(n, p, owner + 1), for 0 ≤ x < n.
constexpr index_t owner(index_t n, index_t p, index_t x) {
  const index_t q = n / p;
  const index_t r = n % p;
  return x < r * (q + 1) ? x / (q + 1) : r + (x - r * (q + 1)) / q;
}

}  // namespace engine

}  // namespace tessera
