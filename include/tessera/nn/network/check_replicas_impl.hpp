#pragma once

#include <tessera/nn/network/check_replicas.hpp>

#include <algorithm>
#include <utility>

namespace tessera::detail {

TESSERA_INLINE std::vector<hashed_copy> copies_of(const keyed_parameters& parameters) {
  std::vector<hashed_copy> all;
  for (const auto& [key, p] : parameters) {
    const tensor<dyn>& x = p->stored();
    if (has_copies(x.layout()) && x.team()->crew_of(x.layout()).takes_part())
      all.push_back({key, x.where(), content_hash(x.local())});
  }
  return all;
}

TESSERA_INLINE void agree_on_copies(const team_handle& team, const std::vector<hashed_copy>& mine) {
  std::vector<std::pair<const crew*, std::vector<const hashed_copy*>>> by_workers;
  for (const hashed_copy& one : mine) {
    const crew& workers = team->crew_of(one.where->layout());
    const auto known =
        std::find_if(by_workers.begin(), by_workers.end(), [&](const auto& group) { return group.first == &workers; });
    (known == by_workers.end() ? by_workers.emplace_back(&workers, std::vector<const hashed_copy*>{}) : *known)
        .second.push_back(&one);
  }
  for (const auto& [workers, held] : by_workers) {
    std::vector<std::uint64_t> hashes;
    for (const hashed_copy* one : held) hashes.push_back(one->hash);
    const std::vector<std::uint64_t> all = team->collect(*workers, hashes, "comparing all copies");
    for (std::size_t k = 0; k < held.size(); ++k) {
      const auto theirs = [&all, k, n = hashes.size()](std::size_t i) { return all[i * n + k]; };
      team->compare_copies(*workers, held[k]->where->layout(), theirs,
                           {.name = held[k]->key.c_str(), .at = team->doing().at});
    }
  }
}

}  // namespace tessera::detail
