#pragma once

#include <tessera/meta/refusals.hpp>

#include <cstddef>

namespace tessera {

/// A list of at most `Capacity` items that can be built and compared while compiling.
///
/// Items are zero by default, since an array of anything else costs compilers time. Other defaults also meet a fault of
/// g++ 12: constant expressions share the array's elements, and one may change another's
/// (tests/plan/constant_laws.cpp). Pushing onto a full list is refused; entry points that know their number of items
/// refuse earlier, in better words.
template <class T, int Capacity>
struct static_vector {
  T items[static_cast<std::size_t>(Capacity)]{};
  int count = 0;

  static constexpr int capacity = Capacity;

  constexpr void push(const T& item) {
    if (count == Capacity) engine::stop(refusal{code::list_full, Capacity});
    items[count++] = item;
  }
  constexpr void resize(int n) { count = n; }

  constexpr int size() const { return count; }
  constexpr bool empty() const { return count == 0; }
  constexpr T& operator[](int i) { return items[i]; }
  constexpr const T& operator[](int i) const { return items[i]; }
  constexpr T* begin() { return items; }
  constexpr T* end() { return items + count; }
  constexpr const T* begin() const { return items; }
  constexpr const T* end() const { return items + count; }

  /// Equal when both hold equal items in the same order; what lies behind the end does not count.
  friend constexpr bool operator==(const static_vector& a, const static_vector& b) {
    if (a.count != b.count) return false;
    for (int i = 0; i < a.count; ++i)
      if (!(a.items[i] == b.items[i])) return false;
    return true;
  }
};

namespace engine {

/// An empty list, to copy: clang, while compiling, makes a list item by item, and copies one several times as fast.
template <class T, int Capacity>
inline constexpr static_vector<T, Capacity> no_items;

}  // namespace engine

}  // namespace tessera
