#pragma once

#include <tessera/nn/call/check_indices.hpp>
#include <tessera/nn/layer/embedding.hpp>

#include <cmath>

namespace tessera::detail {

/// How often all workers look up each of the rows that this one has.
inline at::Tensor times_looked_up(const nn::call& c, const lookup& layer, const at::Tensor& indices) {
  const at::Tensor mine = at::bincount(indices.flatten(), {}, layer.rows);
  return c.exchanged(mine.narrow(0, 0, c.bound.exchanges[0].from->extents()[0]), 0);
}

/// Scales rows longer than the largest norm down to it, as LibTorch does, in the stored weight and in the layer's
/// gathered one. Says whether there were such.
///
/// A worker that has some columns of a row has a term of its norm. Autograd is told of what it sees changed behind the
/// look-up, which keeps no weight: before, it would take what was gathered for stale.
inline bool renormalise(const nn::call& c, const lookup& layer, const at::Tensor& taken, const at::Tensor& times) {
  const nn::parameter& weight = c.state.parameters[0];
  const int rank = c.bound.team->rank();
  const interval rows = box_of(weight.used(), rank)[0];
  const interval kept = box_of(weight.stored().layout(), rank)[0];
  const at::Tensor w = taken.variable_data();
  const at::Tensor stored = weight.stored().local().variable_data();
  const bool largest = std::isinf(layer.norm_type);
  const at::Tensor found = times.nonzero().cpu().contiguous();
  const at::ArrayRef<index_t> looked_up(found.data_ptr<index_t>(), static_cast<std::size_t>(found.numel()));
  at::Tensor terms = at::zeros(times.sizes(), at::kDouble);
  double* const term = terms.data_ptr<double>();
  for (const index_t r : looked_up) {
    if (w.numel() == 0) break;  // of no column
    const auto norm = at::linalg_vector_norm(w[r], layer.norm_type).item<double>();
    term[r] = largest ? norm : std::pow(norm, layer.norm_type);
  }
  const at::Tensor sums = c.exchanged(terms.to(w.device()), 1).cpu().contiguous();
  const double* const sum = sums.data_ptr<double>();
  bool changed = false;
  for (const index_t r : looked_up) {
    const double norm = largest ? sum[r] : std::pow(sum[r], 1 / layer.norm_type);
    if (!(norm > layer.max_norm.value())) continue;
    const double factor = layer.max_norm.value() / (norm + 1e-7);
    if (const index_t global = rows.lo + r; kept.lo <= global && global < kept.hi)
      stored[global - kept.lo].mul_(factor);
    if (!w.is_alias_of(stored)) w[r].mul_(factor);
    changed = true;
  }
  return changed;
}

}  // namespace tessera::detail

namespace tessera::nn {

TESSERA_INLINE at::Tensor forward(const call& c, const engine::lookup& layer) {
  tessera::detail::check_indices(c.bound.team, c.bound.workers(), c.operand(), layer.rows, code::index_out_of_range,
                                 c.compares_indices);
  const at::Tensor indices = c.used();
  const at::Tensor w = c.weight(0);
  const at::Tensor times = layer.counts() ? tessera::detail::times_looked_up(c, layer, indices) : at::Tensor();
  const bool changed = layer.max_norm.is_set() && tessera::detail::renormalise(c, layer, w, times);
  const at::Tensor y = [&] {
    if (c.bound.is_empty) return tessera::detail::empty_result(c.bound.outputs, {w});
    const engine::interval mine = box_of(c.state.parameters[0].used(), c.bound.team->rank())[0];
    const index_t padding =
        mine.lo <= layer.padding_row() && layer.padding_row() < mine.hi ? layer.padding_row() - mine.lo : -1;
    const bool all = mine.size() == layer.rows;
    const at::Tensor elsewhere = all ? at::Tensor() : at::logical_or(indices < mine.lo, indices >= mine.hi);
    const at::Tensor local_row = all ? indices : (indices - mine.lo).masked_fill_(elsewhere, 0);
    at::Tensor rows = at::embedding(w, local_row, padding);
    if (!all) rows = rows.masked_fill_(elsewhere.unsqueeze(-1), 0);
    if (!layer.by_frequency || !rows.requires_grad()) return rows;
    const at::Tensor shares = times.clamp_min(1).to(at::kDouble).reciprocal_().to(rows.scalar_type());
    const at::Tensor share = shares.index_select(0, local_row.flatten()).view(local_row.sizes()).unsqueeze_(-1);
    rows.register_hook([share](const at::Tensor& g) { return g * share; });
    return at::alias(rows);  // a gradient of the result itself is as it comes
  }();
  if (changed) c.state.parameters[0].changed_in_place();
  return c.bound.leaving(y);
}

}  // namespace tessera::nn
