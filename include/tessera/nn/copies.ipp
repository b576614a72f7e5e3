#pragma once

#include <tessera/nn/copies.hpp>

namespace tessera::detail {

TESSERA_INLINE void agree_on_copies(const team_handle& team, const keyed_parameters& parameters) {
  if (!team->inside() || parameters.empty()) return;
  std::vector<std::uint64_t> mine;
  for (const auto& [key, p] : parameters) mine.push_back(hash_of(p->stored().local()));
  const std::vector<std::uint64_t> all = team->collect(mine, "comparing all copies");
  std::size_t number = 0;
  for (const auto& [key, p] : parameters) {
    const auto theirs = [&](index_t i) { return all[static_cast<std::size_t>(i) * mine.size() + number]; };
    team->compare_copies(p->stored().layout(), theirs, {.what = key.c_str(), .at = team->doing().at});
    ++number;
  }
}

}  // namespace tessera::detail
