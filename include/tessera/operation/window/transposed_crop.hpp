#pragma once

#include <tessera/plan/interval.hpp>
#include <tessera/topology/window.hpp>

namespace tessera::engine {

/// The crop of a transposed kernel's results to the outputs that are wanted. LibTorch crops both ends alike and extends
/// the far one by less than a step. Superfluous outputs are cut off behind it; outputs that no input gives are zeros.
/// Where steps are longer than one, LibTorch is never asked for more than a step: its backward in three dimensions
/// would write outside its memory.
struct transposed_crop {
  index_t cut = 0;      ///< at both ends
  index_t further = 0;  ///< at the far one
  interval made;        ///< the outputs that come of it
};
constexpr transposed_crop transposed_crop_of(const sliding& kernel, const interval& inputs, const interval& wanted) {
  const window gives = kernel.needs();
  const interval all{gives.first(inputs.lo), gives.last(inputs.hi - 1) + 1};
  const interval kept = overlap(all, wanted);
  const index_t most = detail::larger(kernel.stride, kernel.dilation) - 1;
  transposed_crop c;
  const index_t safe = kernel.stride > 1 ? kernel.stride : all.size();
  if (!kept.empty()) c.cut = detail::clamped(kept.lo - all.lo, 0, detail::smaller(safe, all.hi - kept.hi + most));
  c.further = detail::clamped(c.cut - (all.hi - wanted.hi), 0, most);
  c.made = {all.lo + c.cut, all.hi - c.cut + c.further};
  return c;
}

}  // namespace tessera::engine
