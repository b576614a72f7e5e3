#pragma once

#include <cstddef>
#include <cstdint>

namespace tessera::engine {

/// The bytes that a block cache holds, and how often it had what was asked for.
struct memory_use {
  std::size_t in_use = 0;  ///< blocks that somebody has
  std::size_t peak = 0;    ///< the most that were in use
  /// what the page source gave: blocks in use, free ones, and what no block has been cut from yet
  std::size_t held = 0;
  std::uint64_t hits = 0;    ///< blocks handed out without new pages
  std::uint64_t moved = 0;   ///< those of them that another thread had before
  std::uint64_t misses = 0;  ///< and with new ones
};

}  // namespace tessera::engine
