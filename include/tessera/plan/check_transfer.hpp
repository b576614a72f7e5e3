#pragma once

#include <tessera/plan/change.hpp>

#include <initializer_list>

namespace tessera::engine {

/// Refuses what one Move or one Fold does not do, so that a plan which needs several is not taken for one.
///
/// A Move starts from a tiling and a Fold ends in one; copies are the same on every line of their axis. A Fold adds
/// terms, never equal copies.
constexpr refusal check_transfer(map kind, const layout& from, const layout& to) {
  if (from.dims.count != to.dims.count) return refusal{code::ranks_differ, from.dims.count, to.dims.count};
  const bool move = kind == map::move;
  for (int d = 0; d < from.dims.count; ++d) {
    if (from.dims[d].extent != to.dims[d].extent)
      return refusal{code::extents_differ, d, from.dims[d].extent, to.dims[d].extent};
    if (!(move ? from : to).dims[d].tiles()) return refusal{code::not_a_tiling, text(), d};
  }
  if (move ? detail::moves(from, to) : detail::folds(from, to)) return {};
  if (!move)
    for (int a = 0; a < from.placements.count; ++a) {
      const placement lies = from.placements[a].kind;
      const bool copies =
          (lies == placement::replicate || lies == placement::invariant) && from.mesh.axes[a].extent > 1;
      const bool stays = from.mesh == to.mesh && to.placements[a].kind == lies;
      if (copies && !stays) return refusal{code::replicate_added_to_partial, from.mesh.axes[a].name, 0};
    }
  // Terms that a Move would have to add or make, and copies that a Fold would have to make.
  for (const layout* x : {move ? &from : &to, move ? &to : &from})
    for (int a = 0; a < x->placements.count; ++a) {
      const placement lies = x->placements[a].kind;
      const bool fits = lies == placement::cut || lies == placement::on || (lies == placement::partial) != move;
      if (!fits && x->mesh.axes[a].extent > 1) return refusal{code::not_a_tiling, x->mesh.axes[a].name, -1};
    }
  return refusal{code::not_a_tiling, text(), -1};
}

}  // namespace tessera::engine
