#pragma once

#include <bit>
#include <cstddef>

namespace tessera::engine {

/// The sizes that blocks of memory have: multiples of 64 to 256 bytes, then four between a power of two and the next.
///
/// A request is rounded up by less than a quarter, and whatever lies less than four classes higher is less than twice
/// as large.
struct size_class {
  static constexpr std::size_t largest = std::size_t{1} << 47;  ///< what a process can address
  static constexpr int count = 4 * (47 - 7);

  int number = 0;

  /// The smallest class that holds so many bytes; 1 <= bytes <= largest.
  static constexpr size_class of(std::size_t bytes) {
    if (bytes <= 256) return {static_cast<int>((bytes - 1) / 64)};
    const auto above = static_cast<int>(std::bit_width(bytes - 1));  // 2^(above - 1) < bytes <= 2^above
    const auto quarters = static_cast<int>((bytes - 1) >> (above - 3)) + 1;
    return {4 * (above - 8) + quarters - 5};
  }
  constexpr std::size_t bytes() const {
    if (number < 4) return 64 * (static_cast<std::size_t>(number) + 1);
    return static_cast<std::size_t>(number % 4 + 5) << (number / 4 + 5);
  }
};

}  // namespace tessera::engine
