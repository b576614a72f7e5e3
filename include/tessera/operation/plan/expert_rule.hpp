#pragma once

#include <tessera/operation/plan/layer_plan.hpp>

namespace tessera::detail {

/// Refuses an input whose first dimension is not that of so many experts, in parts that are known.
constexpr refusal check_experts(const layout& x, index_t experts) {
  const dimension& first = x.dims[0];
  if (first.extent == dynamic) return refusal{code::extent_not_static, 0};
  if (first.bounds == learned) return refusal{code::lengths_not_known, 0};
  return first.extent == experts ? refusal{} : refusal{code::extents_differ, 0, first.extent, experts};
}

/// Lets each expert be on one worker along an axis.
constexpr void tile_experts(layout& x) {
  if (x.dims[0].tiles()) return;
  x.dims[0].tile();
  x.dims[0].balance(1);
}

/// A weight of these extents, one slice for each expert along the first, cut as x is there. Each worker has the weights
/// of its own experts' slots.
template <class Extents = std::initializer_list<index_t>>
constexpr layout weight_of_each(const layout& x, const Extents& extents) {
  layout w = weight_for(x, extents);
  w.dims[0] = x.dims[0];
  for (int a = 0; a < x.placements.count; ++a)
    if (x.placements[a].kind == placement::cut && x.placements[a].dimension == 0) w.placements[a] = x.placements[a];
  return w;
}

}  // namespace tessera::detail
