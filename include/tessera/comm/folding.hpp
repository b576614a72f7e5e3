#pragma once

#include <tessera/comm/region.hpp>

#include <algorithm>
#include <span>
#include <type_traits>
#include <vector>

namespace tessera {
namespace detail {

/// Elements that are combined at a time, in the first cache; a constant, so that compilers take several in one instruction.
inline constexpr index_t at_once = 512;

template <class Each>
void each_of_piece(index_t n, Each&& each) {
  if (n == at_once)
    for (index_t i = 0; i < at_once; ++i) each(i);
  else
    for (index_t i = 0; i < n; ++i) each(i);
}

// to[i] = a[i] combined with b[i], in W; they do not overlap.
template <class W, class A, class B, class T>
void combine_piece(const A* a, const B* b, T* __restrict to, index_t n, combine with) {
  const auto one = [&](index_t i, combine how) {
    to[i] = stored<T>(combined<W>(stored<W>(widened(a[i])), stored<W>(widened(b[i])), how));
  };
  if (with == combine::sum) each_of_piece(n, [&](index_t i) { one(i, combine::sum); });  // a loop without the choice in it
  else each_of_piece(n, [&](index_t i) { one(i, with); });
}
template <class W, class B>
void combine_onto(W* __restrict sums, const B* b, index_t n, combine with) {
  if (with == combine::sum) each_of_piece(n, [&](index_t i) { sums[i] = combined<W>(sums[i], stored<W>(widened(b[i])), combine::sum); });
  else each_of_piece(n, [&](index_t i) { sums[i] = combined<W>(sums[i], stored<W>(widened(b[i])), with); });
}

/// Rows of terms that are combined: where each begins and the distance of neighbours, in elements.
struct term_row {
  const std::byte* data;
  index_t step;
};

// A piece of a row, as neighbours.
template <class T>
const T* piece_of(const term_row& row, index_t first, index_t n, T* gathered) {
  const T* x = reinterpret_cast<const T*>(row.data) + first * row.step;
  if (row.step == 1) return x;
  for (index_t i = 0; i < n; ++i) gathered[i] = x[i * row.step];
  return gathered;
}

// One term is what it is, but for what any and all make of it; two are rounded once in any case; three and more are combined in the
// next wider type.
template <class T>
void combine_rows(std::span<const term_row> terms, T* to, index_t step, index_t n, combine with) {
  using Narrow = decltype(widened(T{}));
  using Wide = element_type<sums_in(element_of<T>)>;
  T x[at_once];
  T y[at_once];
  T z[at_once];
  Wide sums[at_once];
  const std::size_t last = terms.size() - 1;
  for (index_t first = 0; first < n; first += at_once) {
    const index_t m = std::min(at_once, n - first);
    T* at = step == 1 ? to + first : z;
    const T* one = piece_of(terms[0], first, m, x);
    if (last == 0 && (with == combine::any || with == combine::all)) {
      const Narrow none = neutral<Narrow>(with);
      for (index_t i = 0; i < m; ++i) at[i] = stored<T>(combined<Narrow>(none, widened(one[i]), with));
    } else if (last == 0) {
      std::memcpy(at, one, static_cast<std::size_t>(m) * sizeof(T));
    } else if (last == 1) {
      combine_piece<Narrow>(one, piece_of(terms[1], first, m, y), at, m, with);
    } else {
      combine_piece<Wide>(one, piece_of(terms[1], first, m, y), sums, m, with);
      for (std::size_t t = 2; t < last; ++t) combine_onto(sums, piece_of(terms[t], first, m, y), m, with);
      combine_piece<Wide>(sums, piece_of(terms[last], first, m, y), at, m, with);
    }
    if (step != 1)
      for (index_t i = 0; i < m; ++i) to[(first + i) * step] = z[i];
  }
}

}  // namespace detail

/// to = the terms combined in their order, element by element and rounded once; regions of equal extents and elements.
///
/// Every term is read once and the result written once, in pieces that stay in cache.
inline void combine_terms(std::span<const region> terms, const region& to, combine with) {
  thread_local std::vector<detail::term_row> rows;  // reused: terms may be many
  rows.clear();
  static_vector<int, max_dimensions> dims;  // the last of each run of dimensions whose rows follow one another in every region
  static_vector<index_t, max_dimensions> n;
  const auto follows = [&](int outer, int inner) {
    const auto in = [&](const region& r) { return r.strides[outer] == r.strides[inner] * r.extents[inner]; };
    return in(to) && std::all_of(terms.begin(), terms.end(), in);
  };
  for (int d = 0; d < to.extents.count; ++d) {
    if (to.extents[d] == 0) return;
    if (to.extents[d] == 1) continue;
    if (!dims.empty() && follows(dims[dims.count - 1], d)) {
      dims[dims.count - 1] = d;
      n[n.count - 1] *= to.extents[d];
    } else {
      dims.push(d);
      n.push(to.extents[d]);
    }
  }
  const int inner = dims.count - 1;
  for (const region& r : terms) rows.push_back({r.data, inner < 0 ? 1 : r.strides[dims[inner]]});
  static_vector<index_t, max_dimensions> at;
  at.resize(dims.count);
  detail::with_type(to.element, [&](auto zero) {
    using T = decltype(zero);
    constexpr index_t size = sizeof(T);
    std::byte* out = to.data;
    const auto step = [&](int d, index_t by) {
      for (std::size_t t = 0; t < terms.size(); ++t) rows[t].data += by * terms[t].strides[dims[d]] * size;
      out += by * to.strides[dims[d]] * size;
    };
    while (true) {
      detail::combine_rows(std::span<const detail::term_row>(rows), reinterpret_cast<T*>(out), inner < 0 ? 1 : to.strides[dims[inner]],
                           inner < 0 ? 1 : n[inner], with);
      int d = inner - 1;
      for (; d >= 0; --d) {
        step(d, 1);
        if (++at[d] < n[d]) break;
        step(d, -n[d]);
        at[d] = 0;
      }
      if (d < 0) return;
    }
  });
}

}  // namespace tessera
