#pragma once

#include <tessera/comm/base/header_or_compiled.hpp>
#include <tessera/comm/box/arithmetic.hpp>
#include <tessera/meta/static_vector.hpp>

#include <cstddef>
#include <span>
#include <vector>

namespace tessera {

namespace engine {

/// The extents of a box, or where it begins in a tensor.
using box_vector = static_vector<index_t, max_dimensions>;

/// How many elements a box of these extents has.
inline index_t count_of(const box_vector& extents) {
  index_t n = 1;
  for (const index_t e : extents) n *= e;
  return n;
}

/// A box of elements in memory: where it begins, its extents and the distance of neighbours in each dimension, in
/// elements.
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

/// The rows of boxes of equal extents with different strides. Dimensions of extent 1 are left out; rows that are
/// contiguous in all boxes are merged into one.
class common_rows {
 public:
  common_rows() = default;
  common_rows(const box_vector& extents, const std::vector<const index_t*>& strides);

  /// The elements of a row.
  index_t length() const { return n_[n_.count - 1]; }
  /// The distance of neighbours in it, in elements.
  index_t step(std::size_t of) const { return steps_[of][n_.count - 1]; }

  /// Calls row() with `at` on the next row of every box, elements having `size` bytes; afterwards it is where it was.
  template <class Row>
  void each(std::span<std::byte*> at, index_t size, Row&& row) const {
    if (empty_) return;
    const int inner = n_.count - 1;
    if (inner == 0) return row();
    const auto go = [&](int d, index_t by) {
      for (std::size_t i = 0; i < at.size(); ++i) at[i] += by * steps_[i][d] * size;
    };
    box_vector done;
    done.resize(inner);
    while (true) {
      row();
      int d = inner - 1;
      for (; d >= 0; --d) {
        go(d, 1);
        if (++done[d] < n_[d]) break;
        go(d, -n_[d]);
        done[d] = 0;
      }
      if (d < 0) return;
    }
  }

 private:
  box_vector n_;
  std::vector<box_vector> steps_;  // by box
  bool empty_ = false;
};

}  // namespace engine

namespace detail {

template <class Visit, class... T>
void with_type_at(int index, Visit& visit, type_list<T...>) {
  int i = 0;
  static_cast<void>(((i++ == index && (visit(T{}), true)) || ...));
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

namespace engine {

/// Copies the rows of the first of two boxes to those of the second; elements of `size` bytes.
void copy_rows(const common_rows& rows, index_t size, std::byte* from, std::byte* to);

/// Fills a region with the neutral element of a combine: 0 for sums.
void fill_neutral(const region& to, combine with);

}  // namespace engine

}  // namespace tessera

#ifndef TESSERA_COMPILED
#include <tessera/comm/box/region_impl.hpp>
#endif
