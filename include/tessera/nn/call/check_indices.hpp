#pragma once

#include <tessera/generated/nn.hpp>
#include <tessera/tensor/tensor.hpp>

namespace tessera::detail {

/// Throws if this worker has an index outside [0, end), and names it; on all that take part where they compare.
inline void check_indices(const team_handle& team, const crew& workers, const at::Tensor& indices, index_t end,
                          const reason& why, bool compared = true) {
  if (!workers.has(team->rank())) return;
  index_t wrong = end - 1;  // not yet
  if (indices.numel() > 0) {
    const auto [least, most] = at::aminmax(indices);
    if (least.item<index_t>() < 0) wrong = least.item<index_t>();
    else if (most.item<index_t>() >= end) wrong = most.item<index_t>();
  }
  const bool fits = 0 <= wrong && wrong < end;
  if (!compared && !fits) throw error(refusal{why, wrong, end}, team->label());
  if (!compared) return;
  const std::vector<std::uint64_t> all =
      team->collect(workers, {static_cast<std::uint64_t>(wrong)}, "comparing indices");
  for (std::size_t i = 0; i < all.size(); ++i)
    if (const auto index = static_cast<index_t>(all[i]); index < 0 || index >= end)
      throw error(refusal{why, index, end}, label_of(team->mesh(), workers.ranks()[i]));
}

}  // namespace tessera::detail
