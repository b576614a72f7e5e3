#pragma once

#include <tessera/nn/check_indices.hpp>
#include <tessera/nn/embedding.hpp>

namespace tessera::nn {

TESSERA_INLINE at::Tensor forward(const call& c, const lookup& what) {
  tessera::detail::check_indices(c.layer.team, c.operand(), what.rows, code::index_out_of_range, c.compares_indices);
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
