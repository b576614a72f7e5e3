#pragma once

#include <tessera/meta/namespaces.hpp>

#include <cstdint>

namespace tessera {

/// Extents, indices and counts of elements: signed, 64 bits.
using index_t = std::int64_t;

/// An extent that is known only at run time.
inline constexpr index_t dynamic = -1;

namespace detail {

constexpr index_t smaller(index_t a, index_t b) { return a < b ? a : b; }
constexpr index_t larger(index_t a, index_t b) { return a < b ? b : a; }
constexpr index_t clamped(index_t x, index_t lo, index_t hi) { return smaller(larger(x, lo), hi); }

/// Division that rounds towards minus infinity; the divisor is positive.
constexpr index_t floor_divide(index_t a, index_t b) { return a >= 0 ? a / b : -((-a + b - 1) / b); }

/// The remainder of that, from 0 to b − 1.
constexpr index_t modulo(index_t a, index_t b) { return (a % b + b) % b; }

/// Division that rounds towards plus infinity; the divisor is positive.
constexpr index_t ceil_divide(index_t a, index_t b) { return -floor_divide(-a, b); }

/// Whether a · b fits into an index; both are at least 0.
constexpr bool product_fits(index_t a, index_t b) { return a == 0 || b <= INT64_MAX / a; }

/// Sums, products and differences of counts: the largest index stands for more than can be counted, and stays so.
constexpr index_t capped_sum(index_t a, index_t b) { return b > INT64_MAX - a ? INT64_MAX : a + b; }
constexpr index_t capped_product(index_t a, index_t b) { return product_fits(a, b) ? a * b : INT64_MAX; }
constexpr index_t capped_difference(index_t a, index_t b) { return a == INT64_MAX ? a : a - b; }

}  // namespace detail
}  // namespace tessera
