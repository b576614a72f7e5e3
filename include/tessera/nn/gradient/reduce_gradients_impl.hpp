#pragma once

#include <tessera/nn/gradient/held_gradients.hpp>
#include <tessera/nn/gradient/reduce_gradients.hpp>

namespace tessera::detail {

TESSERA_INLINE void reduce(nn::engine::held_gradients& all, call_site at) { all.reduce(at); }

TESSERA_INLINE std::shared_ptr<nn::engine::held_gradients> gradients_of(const team_handle& team,
                                                                        const keyed_parameters& parameters) {
  std::vector<nn::engine::held_member> members;
  for (const auto& [key, p] : parameters)
    if (engine::holds(p->times()) && !p->frozen())
      for (nn::engine::held_member& one : p->waiting().of->forms()) members.push_back(std::move(one));
  return std::make_shared<nn::engine::held_gradients>(team, std::move(members));
}

}  // namespace tessera::detail
