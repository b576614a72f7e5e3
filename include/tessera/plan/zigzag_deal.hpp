#pragma once

#include <tessera/plan/cut.hpp>
#include <tessera/plan/interval.hpp>

namespace tessera::engine {

/// Parts of one dimension, [first, last).
struct part_range {
  int first = 0;
  int last = 0;
};

/// 2p chunks of a dimension, dealt there and back over p parts: part k has chunks k and 2p − 1 − k.
///
/// Chunk c is [cut(n, 2p, c), cut(n, 2p, c + 1)) in units of a grain. Chunk c belongs to part min(c, 2p − 1 − c).
struct zigzag_deal {
  index_t extent = 0;
  index_t grain = 1;
  index_t parts = 1;

  constexpr index_t units() const { return detail::ceil_divide(extent, grain); }

  constexpr interval chunk(index_t c) const {
    return {detail::smaller(extent, cut(units(), 2 * parts, c) * grain),
            detail::smaller(extent, cut(units(), 2 * parts, c + 1) * grain)};
  }

  /// What part k holds, in order. Two chunks side by side are one interval; of few units later chunks are empty.
  constexpr intervals held(index_t k) const {
    const interval first = chunk(k);
    const interval second = chunk(2 * parts - 1 - k);
    if (second.empty()) return {{first}, 1};
    if (first.hi == second.lo) return {{{first.lo, second.hi}}, 1};
    return {{first, second}, 2};
  }

  /// The parts that have chunks of `wanted` on the way there, and those that have some on the way back.
  constexpr part_range there(const interval& wanted) const {
    return {static_cast<int>(first_chunk(wanted)), static_cast<int>(detail::smaller(end_chunk(wanted), parts))};
  }
  constexpr part_range back(const interval& wanted) const {
    return {static_cast<int>(2 * parts - end_chunk(wanted)),
            static_cast<int>(2 * parts - detail::larger(first_chunk(wanted), parts))};
  }

  /// In how many intervals of parts `wanted` lies: in one for each chunk, but for the two in the middle.
  constexpr index_t pieces(const interval& wanted) const {
    if (wanted.empty()) return 0;
    const index_t first = first_chunk(wanted);
    const index_t end = end_chunk(wanted);
    return end - first - (first < parts && parts < end);
  }

 private:
  constexpr index_t first_chunk(const interval& wanted) const { return owner(units(), 2 * parts, wanted.lo / grain); }
  constexpr index_t end_chunk(const interval& wanted) const {
    return owner(units(), 2 * parts, (wanted.hi - 1) / grain) + 1;
  }
};

}  // namespace tessera::engine
