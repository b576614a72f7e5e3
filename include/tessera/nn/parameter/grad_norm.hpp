#pragma once

#include <tessera/nn/parameter/state_value.hpp>

namespace tessera::nn {

/// A judgement of all gradients of a network as one serial vector, with the same bits on every worker.
struct judgement {
  bool finite = false;  ///< no worker has a gradient that is infinite or no number
  double norm = 0;
};

}  // namespace tessera::nn

namespace tessera::detail {

using stepped_tensors = std::vector<nn::engine::stepped_tensor>;

/// The compared numbers, which steer the next step, are equal on all workers or refused.
nn::judgement judged(const team_handle& team, const stepped_tensors& all, double order,
                     const std::vector<double>& compared = {});
/// Multiplies the gradients.
void scale_gradients(const stepped_tensors& all, double by);
/// By how much gradients of a norm are clipped, as by torch::nn::utils::clip_grad_norm_: most / (norm + 1e-6), at most
/// 1.
double clipped_by(double norm, double most);
double clip_grad_norm(const team_handle& team, const stepped_tensors& all, double most, double order,
                      bool error_if_nonfinite);

}  // namespace tessera::detail

namespace tessera::nn {

/// Whether all gradients are finite, and their norm (Σ |g|^order)^(1/order): of a network, or of what `data_parallel`
/// or `bundle_shards` has. One exchange of a number a worker lets all decide alike. Every copy is judged; its norm
/// counts once. Outside of the team nobody knows: not finite, and no number.
template <class Network>
judgement judged(const Network& net, double order = 2, call_site at = call_site::here()) {
  const team_handle team = engine::team_that_steps(net);
  const engine::scoped_context now(*team, {.name = "judging gradients", .at = at});
  return tessera::detail::judged(team, engine::stepped_tensors(net), order);
}

/// The norm of a network's gradients as one serial vector: (Σ |g|^order)^(1/order), or their maximum for infinite
/// order. It is in double, with the same bits on every worker of the team, and NaN outside of it. Parameters without a
/// gradient do not count. One exchange of a number a worker.
template <class Network>
double grad_norm(const Network& net, double order = 2, call_site at = call_site::here()) {
  const team_handle team = engine::team_that_steps(net);
  const engine::scoped_context now(*team, {.name = "a gradient norm", .at = at});
  return tessera::detail::judged(team, engine::stepped_tensors(net), order).norm;
}

/// Scales the gradients by most / (norm + 1e-6) where that is below 1, and gives the norm from before: as
/// torch::nn::utils::clip_grad_norm_, which sees one worker's part alone. `error_if_nonfinite` refuses a norm that is
/// no number, and changes nothing.
template <class Network>
double clip_grad_norm(const Network& net, double most, double order = 2, bool error_if_nonfinite = false,
                      call_site at = call_site::here()) {
  const team_handle team = engine::team_that_steps(net);
  const engine::scoped_context now(*team, {.name = "clipping gradients", .at = at});
  return tessera::detail::clip_grad_norm(team, engine::stepped_tensors(net), most, order, error_if_nonfinite);
}

}  // namespace tessera::nn

#ifndef TESSERA_COMPILED
#include <tessera/nn/parameter/grad_norm_impl.hpp>
#endif
