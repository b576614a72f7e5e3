#pragma once

#include <tessera/operation/window/padding_plan.hpp>
#include <tessera/operation/window/transposed_crop.hpp>
#include <tessera/plan/change.hpp>
#include <tessera/plan/narrowing.hpp>

namespace tessera::engine {

/// Whether a change of layout only brings each worker what lies around its part, in one exchange, and adds it back in
/// one. It holds on all workers or on none.
constexpr bool brings_a_halo(const layout& from, const layout& to) {
  const change there = change_between(from, to), back = change_between(cotangent(to), cotangent(from));
  return there.steps.count == 1 && there.steps[0].kind == map::move && !narrows(there.steps[0]) &&
         back.steps.count == 1 && back.steps[0].kind == map::fold;
}

/// The split of windowed outputs into an inner part, computed from a worker's own elements where they lie, and edges.
/// Edges read what others hold, and are computed by themselves behind the inner part, which waits for nobody.
struct halo_split {
  struct edge {
    interval outputs;
    interval reads;
  };
  bool serves = false;
  /// by the operation, at both ends: where others hold what it takes for zeros its outputs are not the wanted ones
  index_t padded = 0;
  static_vector<edge, 2> edges;
};

/// Of a part of a dimension, and what is held of it when that of others has come beside. It serves where there is a
/// part, the operation pads itself, and an edge reads nothing beyond what is held.
constexpr halo_split halo_split_of(const sliding& kernel, const interval& own, const interval& held,
                                   const interval& outputs, builtin_padding by) {
  halo_split e;
  const padding_plan f = padding_plan_of(kernel, own, outputs, by);
  if (own.empty() || kernel.edge != boundary::zero || own.lo < held.lo || own.hi > held.hi || f.before > 0 ||
      f.behind > 0 || f.trims(own.size()))
    return e;
  e.padded = f.padded;
  const window needs = kernel.needs();
  interval inner = outputs;
  while (held.lo < own.lo && !inner.empty() && needs.first(inner.lo) < own.lo) ++inner.lo;
  while (held.hi > own.hi && !inner.empty() && needs.last(inner.hi - 1) >= own.hi) --inner.hi;
  for (const interval& at : {interval{outputs.lo, inner.lo}, interval{inner.hi, outputs.hi}})
    if (!at.empty()) e.edges.push({at, {needs.first(at.lo), needs.last(at.hi - 1) + 1}});
  e.serves = !inner.empty();
  for (const halo_split::edge& at : e.edges) e.serves = e.serves && at.reads.lo >= held.lo && at.reads.hi <= held.hi;
  return e;
}

/// The split of a transposed window, by linearity. The result is what a worker's own inputs give; at its edges, the
/// results of each received stretch are added. Edges read what others hold alone. It serves where the operation cuts
/// off itself what is more than wanted.
constexpr halo_split adding_of(const sliding& kernel, const interval& own, const interval& held,
                               const interval& outputs) {
  halo_split e;
  if (own.empty() || own.lo < held.lo || own.hi > held.hi ||
      !(transposed_crop_of(kernel, own, outputs).made == outputs))
    return e;
  e.serves = true;
  const window gives = kernel.needs();
  for (const interval& beside : {interval{held.lo, own.lo}, interval{own.hi, held.hi}}) {
    if (beside.empty()) continue;
    const interval at = overlap({gives.first(beside.lo), gives.last(beside.hi - 1) + 1}, outputs);
    if (!at.empty()) e.edges.push({at, beside});
  }
  return e;
}

}  // namespace tessera::engine
