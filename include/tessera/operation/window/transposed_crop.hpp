#pragma once

#include <tessera/plan/interval.hpp>
#include <tessera/topology/window.hpp>

namespace tessera::engine {

/// How what a transposed kernel gives of some inputs becomes the outputs that are wanted. LibTorch cuts off as much at
/// both ends and goes on by less than a step at the far one; what is more than wanted is cut off behind it, and what no
/// input gives is zeros. Nor is it asked for more than a step where steps are longer than one: its backward in three
/// dimensions then writes outside its memory.
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
