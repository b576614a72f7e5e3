#pragma once

#include <tessera/comm/arithmetic.hpp>
#include <tessera/meta/static_vector.hpp>

#include <cstddef>
#include <cstring>

namespace tessera {

/// The extents of a box, or where it begins in a tensor.
using box_vector = static_vector<index_t, max_dimensions>;

/// How many elements a box of these extents has.
inline index_t count_of(const box_vector& extents) {
  index_t n = 1;
  for (const index_t e : extents) n *= e;
  return n;
}

/// A box of elements in memory: where it begins, its extents and the distance of neighbours in each dimension, in elements.
struct region {
  std::byte* data = nullptr;
  tessera::element element = tessera::element::float32;
  box_vector extents;
  box_vector strides;

  index_t count() const { return count_of(extents); }
  index_t bytes() const { return count() * bytes_of(element); }

  /// Whether its elements lie row-major without gaps.
  bool contiguous() const {
    index_t expected = 1;
    for (int d = extents.count - 1; d >= 0; --d) {
      if (extents[d] != 1 && strides[d] != expected) return false;
      expected *= extents[d];
    }
    return true;
  }

  /// A box of it: where that begins, and how far it goes.
  region part(const box_vector& offset, const box_vector& size) const {
    region r = *this;
    index_t before = 0;
    for (int d = 0; d < offset.count; ++d) before += offset[d] * strides[d];
    r.data += before * bytes_of(element);
    r.extents = size;
    return r;
  }

  /// The same extents in row-major storage elsewhere.
  region packed_at(std::byte* where) const {
    region r = *this;
    r.data = where;
    index_t stride = 1;
    for (int d = extents.count - 1; d >= 0; --d) {
      r.strides[d] = stride;
      stride *= extents[d];
    }
    return r;
  }
};

namespace detail {

/// Calls row(a, b, n, step_a, step_b) for every innermost row of two regions of equal extents; steps in elements.
template <class Row>
void each_row(const region& a, const region& b, Row&& row) {
  const index_t size_a = bytes_of(a.element);
  const index_t size_b = bytes_of(b.element);
  box_vector n;
  box_vector sa;
  box_vector sb;
  for (int d = 0; d < a.extents.count; ++d) {  // dimensions of extent 1 go; rows that follow each other without gap join
    if (a.extents[d] == 0) return;
    if (a.extents[d] == 1) continue;
    const int last = n.count - 1;
    if (last >= 0 && sa[last] == a.strides[d] * a.extents[d] && sb[last] == b.strides[d] * a.extents[d]) {
      n[last] *= a.extents[d];
      sa[last] = a.strides[d];
      sb[last] = b.strides[d];
    } else {
      n.push(a.extents[d]);
      sa.push(a.strides[d]);
      sb.push(b.strides[d]);
    }
  }
  if (n.empty()) {
    row(a.data, b.data, index_t{1}, index_t{1}, index_t{1});
    return;
  }
  const int inner = n.count - 1;
  box_vector at;
  at.resize(n.count);
  std::byte* pa = a.data;
  std::byte* pb = b.data;
  while (true) {
    row(pa, pb, n[inner], sa[inner], sb[inner]);
    int d = inner - 1;
    for (; d >= 0; --d) {
      pa += sa[d] * size_a;
      pb += sb[d] * size_b;
      if (++at[d] < n[d]) break;
      pa -= sa[d] * n[d] * size_a;
      pb -= sb[d] * n[d] * size_b;
      at[d] = 0;
    }
    if (d < 0) return;
  }
}

template <class Visit, class... T>
void with_type_at(int place, Visit& visit, type_list<T...>) {
  int i = 0;
  static_cast<void>(((i++ == place && (visit(T{}), true)) || ...));
}

template <class Visit>
void with_type(element e, Visit&& visit) {
  with_type_at(static_cast<int>(e), visit, element_types{});
}

// Calls visit with unsigned integers of this size, or a pair of them: what moves is bytes.
template <class Visit>
void with_bytes(index_t size, Visit&& visit) {
  switch (size) {
    case 1: return visit(std::uint8_t{});
    case 2: return visit(std::uint16_t{});
    case 4: return visit(std::uint32_t{});
    case 8: return visit(std::uint64_t{});
    default: return visit(complex128{});
  }
}

}  // namespace detail

/// to = from, element by element; regions of equal extents and elements.
inline void copy(const region& from, const region& to) {
  detail::with_bytes(bytes_of(from.element), [&](auto zero) {
    using T = decltype(zero);
    detail::each_row(from, to, [](std::byte* a, std::byte* b, index_t n, index_t step_a, index_t step_b) {
      if (step_a == 1 && step_b == 1) {
        std::memcpy(b, a, static_cast<std::size_t>(n) * sizeof(T));
        return;
      }
      constexpr index_t size = sizeof(T);
      for (index_t i = 0; i < n; ++i) std::memcpy(b + i * step_b * size, a + i * step_a * size, sizeof(T));
    });
  });
}

/// Fills a region with the neutral element of a combine: 0 for sums.
inline void fill_neutral(const region& to, combine with) {
  detail::with_type(to.element, [&](auto zero) {
    using T = decltype(zero);
    const T value = detail::stored<T>(detail::neutral<decltype(detail::widened(zero))>(with));
    detail::each_row(to, to, [value](std::byte* a, std::byte*, index_t n, index_t step, index_t) {
      T* x = reinterpret_cast<T*>(a);
      for (index_t i = 0; i < n; ++i) x[i * step] = value;
    });
  });
}

}  // namespace tessera
