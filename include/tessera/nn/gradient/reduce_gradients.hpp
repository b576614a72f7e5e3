#pragma once

#include <tessera/nn/parameter/state_dict.hpp>

namespace tessera::nn::engine {

class held_gradients;

}  // namespace tessera::nn::engine

namespace tessera::detail {

void reduce(nn::engine::held_gradients& all, call_site at);

/// The gradients of these parameters, of which one that nobody knows the order of use.
std::shared_ptr<nn::engine::held_gradients> gradients_of(const team_handle& team, const keyed_parameters& parameters);

/// Those of a network, which knows.
template <class Network>
std::shared_ptr<nn::engine::held_gradients> gradients_of(const Network& net) {
  if constexpr (requires { net.held_gradients(); }) return net.held_gradients();
  else return gradients_of(team_of(net), parameters_by_key(net));
}

}  // namespace tessera::detail

namespace tessera::nn {

/// Gives held parameters (`gathered<gathering::held>`) the gradients of all backwards since the last reduction, summed
/// over the workers. It is one exchange a bundle, for any number of micro-batches. Gathered parameters are released,
/// and the next call gathers the stepped ones. All workers call it, behind the last backward and before a step; where
/// no gradient waits, nothing is exchanged. A step, or a norm, before it is one error.
template <class Network>
void reduce_gradients(const Network& net, call_site at = call_site::here()) {
  tessera::detail::reduce(*tessera::detail::gradients_of(net), at);
}

}  // namespace tessera::nn

#ifndef TESSERA_COMPILED
#include <tessera/nn/gradient/reduce_gradients_impl.hpp>
#endif
