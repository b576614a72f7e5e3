#pragma once

#include <tessera/operation/rule/infer.hpp>

namespace tessera::detail {

/// Gives a cut dimension the halo that the windows of so many outputs need; one that holds a wider halo keeps it.
/// Outputs `keep` the parts of their inputs, or are cut evenly.
constexpr refusal hold_window(layout& x, int d, const window& needs, index_t outputs, bool keep) {
  dimension& dim = x.dims[d];
  if (x.levels(d) == 0 || serves(dim, needs, outputs)) return {};
  if (dim.zigzag) return refusal{code::interval_wanted, d};
  if (!dim.tiles()) return refusal{code::window_without_halo, 0, d};
  if (dim.bounds == learned && !keep) return refusal{code::lengths_not_known, d};
  dim.hold(needs, outputs, keep);
  return {};
}

/// The same for dimensions that kernels slide over.
constexpr refusal hold_windows(layout& x, int first, const sliding* kernels, int count) {
  for (int i = 0; i < count; ++i) {
    const int d = first + i;
    const index_t n = x.dims[d].extent;
    if (const refusal r = kernels[i].check(d, n); !r.ok()) return r;
    if (const refusal r = hold_window(x, d, kernels[i].needs(), kernels[i].outputs(n), kernels[i].keeps()); !r.ok())
      return r;
  }
  return {};
}

}  // namespace tessera::detail
