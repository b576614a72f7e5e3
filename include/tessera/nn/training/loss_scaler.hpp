#pragma once

#include <tessera/nn/parameter/grad_norm.hpp>
#include <tessera/tensor/functions.hpp>

#include <limits>
#include <optional>
#include <utility>
#include <vector>

namespace tessera::nn {

/// How a loss scale begins and moves.
struct loss_scaler_options {
  double scale = 65536;
  double growth = 2;        ///< by what it is multiplied after `interval` steps in a row that were taken
  double backoff = 0.5;     ///< and after one that was not
  index_t interval = 2000;  ///< steps
};

/// To what norm gradients are clipped, and of which order that is.
struct clipping {
  double most = std::numeric_limits<double>::infinity();
  double order = 2;

  friend bool operator==(const clipping&, const clipping&) = default;
};

/// Multiplies a loss, so that small gradients of half types are not rounded to zero, and divides the gradients before
/// the step. A step whose gradients overflowed is skipped, and the scale changes: LibTorch's torch.amp.GradScaler, by
/// its `_amp_update_scale_`, never below 1.
///
///   nn::loss_scaler scaler;
///   scaler.scaled(loss).backward();
///   const nn::judgement judged = scaler.step(optimizer, net, {.most = 1.0});
///
/// Workers judge all gradients in the one exchange of `judged`, so all of them step or none. The scale is one
/// everywhere, also where only some workers have the loss. A scaler serves one network, or what `data_parallel` or
/// `bundle_shards` has, whose team calls it in one order. A worker outside of that does not step. (P. Micikevicius et
/// al., Mixed Precision Training, ICLR 2018.)
class loss_scaler {
 public:
  explicit loss_scaler(const loss_scaler_options& options = {});

  double scale() const { return scale_; }
  index_t good_steps() const { return good_steps_; }  ///< in a row, since the scale moved

  /// scale · loss, of which backward begins.
  at::Tensor scaled(const at::Tensor& loss) const;
  tensor<dyn> scaled(const tensor<dyn>& loss) const;
  template <class P, class S, class E>
  tensor<P, S, E> scaled(const tensor<P, S, E>& loss) const {
    return tensor<P, S, E>(scaled(loss.dynamic()));
  }

  /// Judges the gradients, divides them by the scale, and clips them, where they are finite; else they stay. Its
  /// judgement is of the gradients without the scale, before clipping. `step` asks for it by itself: this is for who
  /// reads or changes gradients between. A step follows, before another loss is scaled.
  template <class Network>
  judgement unscale(const Network& net, const clipping& to = {}, call_site at = call_site::here()) {
    const team_handle team = engine::team_that_steps(net);
    const engine::scoped_context now(*team, {.name = "unscaling gradients", .at = at});
    return unscale(team, engine::stepped_tensors(net), to, false);
  }

  /// Unscales, steps if all gradients are finite, and moves the scale. The optimizer is anything with step(), or a
  /// function that steps several. One of LibTorch steps no other leaves than those that are judged.
  template <class Optimizer, class Network>
  judgement step(Optimizer&& optimizer, const Network& net, const clipping& to = {}, call_site at = call_site::here()) {
    const team_handle team = engine::team_that_steps(net);
    const tessera::detail::stepped_tensors all = engine::stepped_tensors(net);
    bool others = false;
    if constexpr (requires { optimizer.param_groups(); })
      for (const auto& group : optimizer.param_groups()) others = others || steps_others(group.params(), all);
    if (!unscaled_ || to != clipping{}) {
      const engine::scoped_context now(*team, {.name = "unscaling gradients", .at = at});
      unscale(team, all, to, others);
    } else if (others) {
      refuse_others(team);
    }
    const judgement judged = *unscaled_;
    if (judged.finite) {
      if constexpr (requires { optimizer.step(); }) optimizer.step();
      else optimizer();
    }
    stepped(team, all);
    return judged;
  }

  /// The scale and the good steps, the same on every worker.
  state_dict state() const;
  /// Goes on from such a state; options stay.
  void load_state(const state_dict& numbers);

 private:
  /// A gradient, and when it was seen.
  struct seen {
    c10::weak_intrusive_ptr<at::TensorImpl> gradient;
    std::uint32_t version;
  };

  void check_loss(const at::Tensor& loss) const;
  judgement unscale(const team_handle& team, const tessera::detail::stepped_tensors& all, const clipping& to,
                    bool others);
  void stepped(const team_handle& team, const tessera::detail::stepped_tensors& all);
  // Whether gradients are those that were stepped last.
  bool are_seen(const tessera::detail::stepped_tensors& all) const;
  // Whether one of an optimizer's leaves, which has a gradient, is none of these.
  static bool steps_others(const std::vector<at::Tensor>& leaves, const tessera::detail::stepped_tensors& all);
  [[noreturn]] static void refuse_others(const team_handle& team);

  loss_scaler_options options_;
  double scale_;
  index_t good_steps_ = 0;
  std::optional<judgement> unscaled_;  ///< for the step that comes
  std::vector<seen> stepped_;
};

}  // namespace tessera::nn

#ifndef TESSERA_COMPILED
#include <tessera/nn/training/loss_scaler_impl.hpp>
#endif
