#pragma once

#include <tessera/plan/interval.hpp>
#include <tessera/topology/window.hpp>

namespace tessera {

namespace engine {

/// The padding that a local operation with windows does itself: none; of a pooling, half of a window; any.
enum class builtin_padding : signed char { none, half, any };

}  // namespace engine

namespace detail {

/// How wide it pads a part of a dimension. LibTorch's maxima under dilated windows may read beyond a padded operand.
/// Its averages over space take no operand smaller than a window.
constexpr index_t widest_padding(builtin_padding by, const sliding& kernel, index_t held) {
  if (by == builtin_padding::any) return INT64_MAX / 4;
  return by == builtin_padding::half && kernel.dilation == 1 && held >= kernel.kernel ? kernel.kernel / 2 : 0;
}

}  // namespace detail

namespace engine {

/// How a worker's part of a dimension becomes what windows over it read, where zeros lie beyond the edge. LibTorch pads
/// both ends alike and drops an incomplete step at the far one. Where that gives just the outputs wanted, the part is
/// read where it lies. Else it is copied into a padded box, of which only some may be read.
struct padding_plan {
  index_t padded = 0;  ///< by the operation, at both ends
  index_t before = 0;
  index_t behind = 0;
  interval read;  ///< of the padded box

  constexpr bool trims(index_t held) const { return read.lo > 0 || read.hi < before + held + behind; }
};

/// The padding of a part `held` for these outputs; `by` says how the operation pads by itself.
constexpr padding_plan padding_plan_of(const sliding& kernel, const interval& held, const interval& outputs,
                                       builtin_padding by) {
  const window needs = kernel.needs();
  const interval read{needs.first(outputs.lo), needs.last(outputs.hi - 1) + 1};
  const index_t padded = held.lo - read.lo;
  padding_plan f;
  if (padded >= 0 && padded <= detail::widest_padding(by, kernel, held.size()) &&
      held.size() + 2 * padded >= kernel.reach() &&
      (held.size() + 2 * padded - kernel.reach()) / kernel.stride + 1 == outputs.size()) {
    f.padded = padded;
    f.read = {0, held.size()};
    return f;
  }
  const bool apart = read.hi <= held.lo || read.lo >= held.hi;  // zeros alone
  f.before = detail::larger(0, apart ? read.size() : padded);
  f.behind = detail::larger(0, apart ? 0 : read.hi - held.hi);
  const index_t begin = apart ? 0 : detail::larger(0, -padded);
  f.read = {begin, begin + read.size()};
  return f;
}

}  // namespace engine

}  // namespace tessera
