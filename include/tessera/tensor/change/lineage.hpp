#pragma once

#include <tessera/tensor/change/change.hpp>

#include <cstdint>
#include <initializer_list>

namespace tessera::detail {

/// How a tensor came about of others, as a number: what made it, and of which in which order. A tensor that enters from
/// outside has its number among those of its workers. So one program gives a tensor one lineage on all of them.
constexpr std::uint64_t lineage_of(std::uint64_t made_by, std::initializer_list<std::uint64_t> of) {
  fingerprint f;
  f << made_by;
  for (const std::uint64_t one : of) f << one;
  return f.value();
}

/// The lineage of the next tensor that comes in over a mesh.
inline std::uint64_t next_lineage(team_state& team, const mesh_value& mesh) {
  return lineage_of(text("entry").hash, {team.crew_of(mesh).next_entry()});
}

}  // namespace tessera::detail
