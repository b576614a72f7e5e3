#pragma once

#include <tessera/meta/static_vector.hpp>
#include <tessera/topology/element.hpp>
#include <tessera/topology/layout.hpp>

#include <cstddef>
#include <cstring>
#include <limits>
#include <type_traits>

namespace tessera {

/// A box of elements in memory: where it begins, its extents and the distance of neighbours in each dimension, in elements.
struct region {
  std::byte* data = nullptr;
  tessera::element element = tessera::element::float32;
  static_vector<index_t, max_dimensions> extents;
  static_vector<index_t, max_dimensions> strides;

  index_t count() const {
    index_t n = 1;
    for (index_t e : extents) n *= e;
    return n;
  }
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
  const index_t size = bytes_of(a.element);
  static_vector<index_t, max_dimensions> n;
  static_vector<index_t, max_dimensions> sa;
  static_vector<index_t, max_dimensions> sb;
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
  static_vector<index_t, max_dimensions> at;
  at.resize(n.count);
  std::byte* pa = a.data;
  std::byte* pb = b.data;
  while (true) {
    row(pa, pb, n[inner], sa[inner], sb[inner]);
    int d = inner - 1;
    for (; d >= 0; --d) {
      pa += sa[d] * size;
      pb += sb[d] * size;
      if (++at[d] < n[d]) break;
      pa -= sa[d] * n[d] * size;
      pb -= sb[d] * n[d] * size;
      at[d] = 0;
    }
    if (d < 0) return;
  }
}

template <class Visit>
void with_type(element e, Visit&& visit) {
  switch (e) {
    case element::float64: return visit(double{});
    case element::float32: return visit(float{});
    case element::int64: return visit(std::int64_t{});
    case element::int32: return visit(std::int32_t{});
    case element::int16: return visit(std::int16_t{});
    case element::int8: return visit(std::int8_t{});
    case element::uint8: return visit(std::uint8_t{});
    case element::boolean: return visit(bool{});
  }
}

template <class T>
T combined(T a, T b, combine with) {
  switch (with) {
    case combine::max: return a < b ? b : a;
    case combine::min: return b < a ? b : a;
    case combine::sum: break;
  }
  if constexpr (std::is_same_v<T, bool>) return a || b;
  else return static_cast<T>(a + b);
}

template <class T>
T neutral(combine with) {
  using limits = std::numeric_limits<T>;
  if constexpr (limits::has_infinity) {
    if (with == combine::max) return -limits::infinity();
    if (with == combine::min) return limits::infinity();
  } else {
    if (with == combine::max) return limits::lowest();
    if (with == combine::min) return limits::max();
  }
  return T{};
}

}  // namespace detail

/// to = from, element by element; regions of equal extents.
inline void copy(const region& from, const region& to) {
  detail::with_type(from.element, [&](auto zero) {
    using T = decltype(zero);
    detail::each_row(from, to, [](std::byte* a, std::byte* b, index_t n, index_t step_a, index_t step_b) {
      if (step_a == 1 && step_b == 1) {
        std::memcpy(b, a, static_cast<std::size_t>(n) * sizeof(T));
        return;
      }
      const T* x = reinterpret_cast<const T*>(a);
      T* y = reinterpret_cast<T*>(b);
      for (index_t i = 0; i < n; ++i) y[i * step_b] = x[i * step_a];
    });
  });
}

/// to = to combined with from, element by element.
inline void accumulate(const region& from, const region& to, combine with) {
  detail::with_type(from.element, [&](auto zero) {
    using T = decltype(zero);
    detail::each_row(from, to, [with](std::byte* a, std::byte* b, index_t n, index_t step_a, index_t step_b) {
      const T* x = reinterpret_cast<const T*>(a);
      T* y = reinterpret_cast<T*>(b);
      for (index_t i = 0; i < n; ++i) y[i * step_b] = detail::combined(y[i * step_b], x[i * step_a], with);
    });
  });
}

/// Fills a region with the neutral element of a combine: 0 for sums.
inline void fill_neutral(const region& to, combine with) {
  detail::with_type(to.element, [&](auto zero) {
    using T = decltype(zero);
    detail::each_row(to, to, [with](std::byte* a, std::byte*, index_t n, index_t step, index_t) {
      T* x = reinterpret_cast<T*>(a);
      for (index_t i = 0; i < n; ++i) x[i * step] = detail::neutral<T>(with);
    });
  });
}

}  // namespace tessera
