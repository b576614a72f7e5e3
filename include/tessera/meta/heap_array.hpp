#pragma once

#include <tessera/meta/integer.hpp>

#include <cstddef>
#include <initializer_list>
#include <utility>

namespace tessera::engine {

/// An array whose length its making says, zeros at first: what constant functions compute in.
template <class T>
class heap_array {
 public:
  constexpr heap_array() = default;
  constexpr explicit heap_array(index_t size)
      : data_(size > 0 ? new T[static_cast<std::size_t>(size)]{} : nullptr), size_(size > 0 ? size : 0) {}
  constexpr heap_array(const heap_array& other) : heap_array(other.size_) {
    for (index_t i = 0; i < size_; ++i) data_[i] = other.data_[i];
  }
  constexpr heap_array(heap_array&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  constexpr heap_array& operator=(heap_array other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
  }
  constexpr ~heap_array() { delete[] data_; }

  constexpr index_t size() const { return size_; }
  constexpr T& operator[](index_t i) { return data_[i]; }
  constexpr const T& operator[](index_t i) const { return data_[i]; }
  constexpr T* begin() { return data_; }
  constexpr T* end() { return data_ + size_; }
  constexpr const T* begin() const { return data_; }
  constexpr const T* end() const { return data_ + size_; }

  friend constexpr bool operator==(const heap_array& a, std::initializer_list<T> b) {
    if (a.size_ != static_cast<index_t>(b.size())) return false;
    for (index_t i = 0; i < a.size_; ++i)
      if (!(a.data_[i] == b.begin()[i])) return false;
    return true;
  }

 private:
  T* data_ = nullptr;
  index_t size_ = 0;
};

}  // namespace tessera::engine
