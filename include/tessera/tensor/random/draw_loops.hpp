#pragma once

#include <tessera/meta/machine.hpp>

#include <bit>
#include <cstdint>
#include <cstring>

namespace tessera::detail {

/// How far the places of neighbours lie apart in a stream of numbers.
inline constexpr std::uint64_t step_of_draws = 0x9e3779b97f4a7c15u;

#define TESSERA_LOOPS <tessera/tensor/random/draw_loops.inc>
#include <tessera/meta/each_machine.inc>
#undef TESSERA_LOOPS

/// Loops over neighbours in a stream, by one set of instructions: all give the same bits.
struct draw_loops {
  void (*below)(bool* to, index_t n, std::uint64_t at, std::uint64_t share);
  void (*uniform)(double* to, index_t n, std::uint64_t at);
};

/// The loops for this machine.
inline draw_loops draw_loops_here() {
#ifdef __x86_64__
  if (has_avx2()) return {of_avx2::below, of_avx2::uniform};
#endif
  return {of_any_machine::below, of_any_machine::uniform};
}

}  // namespace tessera::detail
