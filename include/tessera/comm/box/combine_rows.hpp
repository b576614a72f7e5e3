#pragma once

#include <tessera/comm/box/region.hpp>

#include <algorithm>
#include <cstring>
#include <span>
#include <type_traits>
#include <vector>

namespace tessera {
namespace detail {

/// Elements that are combined at a time, in the first cache.
inline constexpr index_t at_once = 512;

// In blocks of a constant size, so that compilers take several in one instruction.
template <class Each>
void each_of_piece(index_t n, Each&& each) {
  constexpr index_t block = 32;
  index_t i = 0;
  for (; i + block <= n; i += block)
    for (index_t j = 0; j < block; ++j) each(i + j);
  for (; i < n; ++i) each(i);
}

// to[i] = a[i] combined with b[i], in W; they do not overlap.
template <class W, class A, class B, class T>
void combine_piece(const A* a, const B* b, T* __restrict to, index_t n, combine with) {
  const auto one = [&](index_t i, combine how) {
    to[i] = stored<T>(combined<W>(stored<W>(widened(a[i])), stored<W>(widened(b[i])), how));
  };
  // a loop without the choice in it
  if (with == combine::sum) each_of_piece(n, [&](index_t i) { one(i, combine::sum); });
  else each_of_piece(n, [&](index_t i) { one(i, with); });
}
template <class W, class B>
void combine_onto(W* __restrict sums, const B* b, index_t n, combine with) {
  if (with == combine::sum)
    each_of_piece(n, [&](index_t i) { sums[i] = combined<W>(sums[i], stored<W>(widened(b[i])), combine::sum); });
  else each_of_piece(n, [&](index_t i) { sums[i] = combined<W>(sums[i], stored<W>(widened(b[i])), with); });
}

// A piece of a row, as neighbours.
template <class T>
const T* piece_of(const std::byte* row, index_t step, index_t first, index_t n, T* gathered) {
  const T* x = reinterpret_cast<const T*>(row) + first * step;
  if (step == 1) return x;
  for (index_t i = 0; i < n; ++i) gathered[i] = x[i * step];
  return gathered;
}

// One term stays as it is, but `any` and `all` make it 0 or 1. Two are rounded once in any case; three and more are
// combined in the next wider type.
template <class T>
void combine_row(std::span<std::byte* const> terms, const common_rows& rows, T* to, combine with) {
  using Narrow = decltype(widened(T{}));
  using Wide = element_type<sums_in(element_of<T>)>;
  T x[at_once];
  T y[at_once];
  T z[at_once];
  Wide sums[at_once];
  const index_t n = rows.length();
  const index_t step = rows.step(terms.size());
  const std::size_t last = terms.size() - 1;
  for (index_t first = 0; first < n; first += at_once) {
    const index_t m = std::min(at_once, n - first);
    T* at = step == 1 ? to + first : z;
    const auto piece = [&](std::size_t t, T* gathered) { return piece_of(terms[t], rows.step(t), first, m, gathered); };
    const T* one = piece(0, x);
    if (last == 0 && (with == combine::any || with == combine::all)) {
      const Narrow none = neutral<Narrow>(with);
      for (index_t i = 0; i < m; ++i) at[i] = stored<T>(combined<Narrow>(none, widened(one[i]), with));
    } else if (last == 0) {
      std::memcpy(at, one, static_cast<std::size_t>(m) * sizeof(T));
    } else if (last == 1) {
      combine_piece<Narrow>(one, piece(1, y), at, m, with);
    } else {
      combine_piece<Wide>(one, piece(1, y), sums, m, with);
      for (std::size_t t = 2; t < last; ++t) combine_onto(sums, piece(t, y), m, with);
      combine_piece<Wide>(sums, piece(last, y), at, m, with);
    }
    if (step != 1)
      for (index_t i = 0; i < m; ++i) to[(first + i) * step] = z[i];
  }
}

}  // namespace detail

namespace engine {

/// Combines terms in their order, element by element and rounded once: `at` has the rows of each, and then those of the
/// result.
///
/// Every term is read once and the result written once, in pieces that stay in cache.
inline void combine_rows(const common_rows& rows, element e, std::span<std::byte*> at, combine with) {
  detail::with_type(e, [&](auto zero) {
    using T = decltype(zero);
    rows.each(at, sizeof(T), [&] {
      detail::combine_row(std::span<std::byte* const>(at.first(at.size() - 1)), rows, reinterpret_cast<T*>(at.back()),
                          with);
    });
  });
}

}  // namespace engine

}  // namespace tessera
