#pragma once
// A chain on the workers of a team.

#include "evaluate.hpp"
#include "serial.hpp"

#include <tessera/nn/layer/forward.hpp>
#include <tessera/nn/layer/losses.hpp>
#include <tessera/tensor/launch.hpp>
#include <tessera/tensor/verbs.hpp>

namespace conformance {

/// The target of a loss, which lies as x does.
inline tensor<dyn> target_beside(const tensor<dyn>& x) {
  const at::Tensor part = part_of(target_of(x.layout(), x.type()), x.layout(), x.team()->rank());
  return {x.team(), x.layout(), part.to(device_of(*x.team()))};
}

/// A link bound to a team, with the parameters and buffers of this worker.
class running_link {
 public:
  running_link(const team_handle& team, const link& of, const serial_state& begins, element e) : team_(team), of_(&of) {
    const layer_plan& plan = of.plan;
    for (int k = 0; k < plan.parameters(); ++k) {
      state.parameters.emplace_back(team, plan.parameter(k).name, plan.parameter(k), plan.parameter_element(k, e),
                                    seed{1});
      state.parameters.back().assign(begins.parameters[static_cast<std::size_t>(k)]);
    }
    for (int k = 0; k < plan.buffers(); ++k) {
      state.buffers.emplace_back(team, plan.buffer(k).name, plan.buffer(k), seed{1});
      state.buffers.back().assign(begins.buffers[static_cast<std::size_t>(k)]);
    }
  }

  nn::engine::layer_state state;

  tensor<dyn> operator()(const tensor<dyn>& x, bool training) const {
    return std::visit([&](const auto& what) { return forward(what, x, training); }, of_->what);
  }

 private:
  const layout& output() const { return of_->plan.output(); }

  template <class Layer>
  tensor<dyn> forward(const Layer& what, const tensor<dyn>& x, bool training) const {
    const nn::engine::bound_layer bound(team_, of_->plan, x.type());
    const std::vector<at::Tensor> operands{x.local()};
    return {team_, output(), nn::forward(nn::call{bound, operands, state, training}, what)};
  }
  tensor<dyn> forward(const repartition_description&, const tensor<dyn>& x, bool) const { return to(output(), x); }
  tensor<dyn> forward(const windowed& part, const tensor<dyn>& x, bool) const {
    check(part.what.check());
    if (!output().mesh.contains(team_->rank()))
      return {team_, output(), tessera::detail::empty_result(held_by(output(), team_->rank()), {x.local()})};
    return {team_, output(), nn::interpolate(x.local(), part.what, part.where)};
  }
  tensor<dyn> forward(const loss& what, const tensor<dyn>& x, bool) const {
    const tensor<dyn> y = target_beside(x);
    switch (what.by) {
      case nn::reduction::none: return of<nn::reduction::none>(what.what, x, y);
      case nn::reduction::mean: return of<nn::reduction::mean>(what.what, x, y);
      case nn::reduction::sum: return of<nn::reduction::sum>(what.what, x, y);
      case nn::reduction::batch_mean: break;
    }
    return of<nn::reduction::batch_mean>(what.what, x, y);
  }
  template <nn::reduction By>
  static tensor<dyn> of(loss::kind what, const tensor<dyn>& x, const tensor<dyn>& y) {
    switch (what) {
      case loss::kind::l1: return nn::l1_loss<By>(x, y);
      case loss::kind::squares: return nn::mse_loss<By>(x, y);
      case loss::kind::poisson: return nn::poisson_nll_loss<By>(x, y);
      case loss::kind::entropy: return nn::binary_cross_entropy<By>(x, y);
      case loss::kind::entropy_of_logits: return nn::binary_cross_entropy_with_logits<By>(x, y);
      case loss::kind::divergence: break;
    }
    return nn::kl_div<By>(x, y);
  }

  team_handle team_;
  const link* of_;
};

/// Σ (y − target)², which every worker of y's mesh has.
inline tensor<dyn> squares_from_target(const tensor<dyn>& y) {
  return to(one_number(y.layout().mesh), sum(square(y - target_beside(y))));
}

}  // namespace conformance
