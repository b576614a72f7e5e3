#pragma once

#include <tessera/nn/parameter/state_dict.hpp>

namespace tessera::detail {

void reduce_gradients(const team_handle& team, const keyed_parameters& parameters);

}  // namespace tessera::detail

namespace tessera::nn {

/// Gives parameters that are held (`gathered<gathering::held>`) the gradients of all backwards since the last time,
/// summed over the workers: one exchange a parameter, for any number of micro-batches. What was gathered goes, and the
/// next call gathers what a step has made of it. All workers call it, behind the last backward and before a step; where
/// no gradient waits, nothing is exchanged. Who steps, or asks for a norm, before gets one error.
template <class Network>
void reduce_gradients(const Network& net, call_site at = call_site::here()) {
  const team_handle team = tessera::detail::team_of(net);
  const engine::scoped_context now(*team, {.why = purpose::backward, .name = "reducing gradients", .at = at});
  tessera::detail::reduce_gradients(team, tessera::detail::parameters_by_key(net));
}

}  // namespace tessera::nn

#ifndef TESSERA_COMPILED
#include <tessera/nn/parameter/reduce_gradients_impl.hpp>
#endif
