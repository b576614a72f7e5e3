#pragma once

#include <tessera/nn/embedding.hpp>

namespace tessera::detail {

/// Throws if this worker has an index of no row, and names it; on every worker of the team where they compare.
inline void check_indices(const team_handle& team, const at::Tensor& indices, index_t rows, bool compared) {
  if (!team->inside()) return;
  index_t wrong = rows - 1;  // not yet
  if (indices.numel() > 0) {
    const auto [least, most] = at::aminmax(indices);
    if (least.item<index_t>() < 0) wrong = least.item<index_t>();
    else if (most.item<index_t>() >= rows) wrong = most.item<index_t>();
  }
  const bool fits = 0 <= wrong && wrong < rows;
  if (!compared && !fits) throw error(refusal{code::index_out_of_range, wrong, rows}, team->label());
  if (!compared) return;
  const std::vector<std::uint64_t> all = team->collect(static_cast<std::uint64_t>(wrong), "comparing indices");
  for (std::size_t i = 0; i < all.size(); ++i)
    if (const auto index = static_cast<index_t>(all[i]); index < 0 || index >= rows)
      throw error(refusal{code::index_out_of_range, index, rows}, label_of(team->mesh(), team->mesh().rank(team->mesh().at(static_cast<int>(i)))));
}

}  // namespace tessera::detail

namespace tessera::nn {

TESSERA_INLINE at::Tensor forward(const call& c, const lookup& what) {
  tessera::detail::check_indices(c.layer.team, c.operand(), what.rows, c.compares_indices);
  const at::Tensor indices = c.used();
  const at::Tensor w = c.weight(0);
  if (c.layer.is_empty) return c.layer.leaving(tessera::detail::empty_result(c.layer.outputs, {w}));
  const interval mine = box_of(c.state.parameters[0].used(), c.layer.team->rank())[0];
  const index_t padding = mine.lo <= what.padding_row() && what.padding_row() < mine.hi ? what.padding_row() - mine.lo : -1;
  if (mine.size() == what.rows) return c.layer.leaving(at::embedding(w, indices, padding));
  const at::Tensor place = indices - mine.lo;
  const at::Tensor elsewhere = at::logical_or(place < 0, place >= mine.size());
  return c.layer.leaving(at::embedding(w, place.masked_fill(elsewhere, 0), padding).masked_fill_(elsewhere.unsqueeze(-1), 0));
}

}  // namespace tessera::nn
