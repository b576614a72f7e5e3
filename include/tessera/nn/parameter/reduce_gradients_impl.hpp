#pragma once

#include <tessera/nn/parameter/reduce_gradients.hpp>

namespace tessera::detail {

TESSERA_INLINE void reduce_gradients(const team_handle& team, const keyed_parameters& parameters) {
  if (!team->inside()) return;
  for (const auto& [key, p] : parameters) p->reduce_gradient();
}

}  // namespace tessera::detail
