#pragma once

#include <tessera/meta/integer.hpp>

namespace tessera::detail {

// How many bytes one instruction takes, of each set of them that loops are compiled for.
namespace of_any_machine {
inline constexpr index_t lane_bytes = 16;
}
#ifdef __x86_64__
namespace of_avx2 {
inline constexpr index_t lane_bytes = 32;
}
/// Whether this machine has the wider one.
inline bool has_avx2() {
  static const bool has = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  return has;
}
#endif

}  // namespace tessera::detail
