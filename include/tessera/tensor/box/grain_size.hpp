#pragma once

#include <tessera/meta/integer.hpp>

namespace tessera::detail {

/// The fewest elements of a loop that a thread takes: LibTorch's own number.
inline constexpr index_t grain_size = 32768;

}  // namespace tessera::detail
