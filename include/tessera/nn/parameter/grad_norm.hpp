#pragma once

#include <tessera/nn/parameter/state_dict.hpp>

namespace tessera::detail {

/// The norm; what it is to be clipped to is only compared over the workers.
double grad_norm(const team_handle& team, const keyed_parameters& parameters, double order, double most = 0);
double clip_grad_norm(const team_handle& team, const keyed_parameters& parameters, double most, double order,
                      bool error_if_nonfinite);

}  // namespace tessera::detail

namespace tessera::nn {

/// The norm of a network's gradients, as if they were one serial vector: (Σ |g|^order)^(1/order), or their maximum
/// where the order is infinite; in double, the same bits on every worker of the team, and no number outside of it.
/// Parameters without a gradient do not count. One exchange of a number a worker.
template <class Network>
double grad_norm(const Network& net, double order = 2, call_site at = call_site::here()) {
  const team_handle team = tessera::detail::team_of(net);
  const engine::scoped_context now(*team, {.name = "a gradient norm", .at = at});
  return tessera::detail::grad_norm(team, tessera::detail::parameters_by_key(net), order);
}

/// Scales the gradients by most / (norm + 1e-6) where that is below 1, and gives the norm from before: as
/// torch::nn::utils::clip_grad_norm_, which sees one worker's part alone. `error_if_nonfinite` refuses a norm that is
/// no number, and changes nothing.
template <class Network>
double clip_grad_norm(const Network& net, double most, double order = 2, bool error_if_nonfinite = false,
                      call_site at = call_site::here()) {
  const team_handle team = tessera::detail::team_of(net);
  const engine::scoped_context now(*team, {.name = "clipping gradients", .at = at});
  return tessera::detail::clip_grad_norm(team, tessera::detail::parameters_by_key(net), most, order,
                                         error_if_nonfinite);
}

}  // namespace tessera::nn

#ifndef TESSERA_COMPILED
#include <tessera/nn/parameter/grad_norm_impl.hpp>
#endif
