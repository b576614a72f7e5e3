#pragma once

#include <tessera/meta/integer.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

namespace tessera::engine {

/// Of so many bytes and more nobody finds all in a cache when they are read, so they are written past the caches.
inline constexpr index_t streamed_from = index_t{4} << 20;

/// Copies bytes as `memcpy` does. Large results bypass the caches (streaming stores), which would fetch each line only
/// to overwrite it. A fence ends the copy: whoever learns of the result afterwards finds it.
inline void copy_bytes(std::byte* to, const std::byte* from, std::size_t n) {
#ifdef __SSE2__
  constexpr std::size_t line = 64;
  if (static_cast<index_t>(n) >= streamed_from) {
    const std::size_t head = (line - reinterpret_cast<std::uintptr_t>(to) % line) % line;
    std::memcpy(to, from, head);
    const std::size_t lines = (n - head) / line;
    for (std::size_t i = 0; i < lines; ++i) {
      const auto* const x = reinterpret_cast<const __m128i*>(from + head + i * line);
      auto* const y = reinterpret_cast<__m128i*>(to + head + i * line);
      const __m128i part[]{_mm_loadu_si128(x), _mm_loadu_si128(x + 1), _mm_loadu_si128(x + 2), _mm_loadu_si128(x + 3)};
      for (int k = 0; k < 4; ++k) _mm_stream_si128(y + k, part[k]);
    }
    _mm_sfence();
    const std::size_t done = head + lines * line;
    std::memcpy(to + done, from + done, n - done);
    return;
  }
#endif
  std::memcpy(to, from, n);
}

}  // namespace tessera::engine
