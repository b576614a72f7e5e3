#pragma once

#include <tessera/nn/parameter/state_dict.hpp>

namespace tessera::detail {

/// A parameter's copy on this worker, by a hash.
struct hashed_copy {
  std::string key;
  shared_layout_handle where;
  std::uint64_t hash;
};
/// Those of which other workers have copies.
std::vector<hashed_copy> copies_of(const keyed_parameters& parameters);

/// Compares them, of each mesh on its workers.
void agree_on_copies(const team_handle& team, const std::vector<hashed_copy>& mine);

}  // namespace tessera::detail

namespace tessera::nn {

/// Throws on every worker of the team unless the copies of each parameter have the same bits, and names the first that
/// differs. Copies drift apart by an update by hand, or by a LibTorch function that sees one worker's part. One
/// exchange of a number a parameter.
template <class Network>
void agree_on_copies(const Network& net, call_site at = call_site::here()) {
  const team_handle team = tessera::detail::team_of(net);
  const engine::scoped_context now(*team, {.name = "comparing copies", .at = at});
  tessera::detail::agree_on_copies(team, tessera::detail::copies_of(tessera::detail::parameters_by_key(net)));
}

}  // namespace tessera::nn

#ifndef TESSERA_COMPILED
#include <tessera/nn/network/check_replicas_impl.hpp>
#endif
