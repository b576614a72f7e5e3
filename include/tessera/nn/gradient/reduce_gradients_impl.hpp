#pragma once

#include <tessera/nn/gradient/held_gradients.hpp>
#include <tessera/nn/gradient/reduce_gradients.hpp>

namespace tessera::detail {

TESSERA_INLINE void reduce(nn::engine::held_gradients& all, call_site at) { all.reduce(at); }

TESSERA_INLINE std::shared_ptr<nn::engine::held_gradients> gradients_of(const team_handle& team,
                                                                        const keyed_parameters& parameters) {
  std::vector<nn::engine::held_member> members;
  for (const auto& [key, p] : parameters)
    if (engine::holds(p->times())) members.push_back(p->waiting());
  return std::make_shared<nn::engine::held_gradients>(team, std::move(members));
}

}  // namespace tessera::detail
