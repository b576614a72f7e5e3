#pragma once

#include <tessera/nn/refusals.hpp>
#include <tessera/nn/training/loss_scaler.hpp>
#include <tessera/nn/training/small_state.hpp>

#include <ATen/ops/_amp_update_scale.h>

#include <algorithm>
#include <cmath>

namespace tessera::nn {

namespace engine {

/// LibTorch keeps a scale as a float.
inline bool is_scale(double s) { return s >= 1 && s <= static_cast<double>(std::numeric_limits<float>::max()); }

/// Has a gradient that unscaling rounds to zero where the scale kept it.
inline bool loses_by_unscaling(const parameter& p) { return p.stored().type() == element::float16; }

}  // namespace engine

TESSERA_INLINE loss_scaler::loss_scaler(const loss_scaler_options& options)
    : options_(options), scale_(static_cast<float>(options.scale)) {
  const bool grows = options.growth >= 1 && std::isfinite(options.growth);
  const bool backs_off = options.backoff > 0 && options.backoff <= 1;
  const bool counts = options.interval >= 1 && options.interval <= std::numeric_limits<int>::max();
  if (!engine::is_scale(options.scale) || !grows || !backs_off || !counts)
    throw error(refusal{code::scaling_out_of_range},
                fmt::format("scale {}, growth {}, backoff {}, interval {}", options.scale, options.growth,
                            options.backoff, options.interval));
}

TESSERA_INLINE void loss_scaler::check_loss(const at::Tensor& loss) const {
  if (unscaled_) throw error(refusal{code::unscaled_twice}, "a step is due");
  if (!loss.defined() || !at::isFloatingType(loss.scalar_type()))
    throw error(refusal{code::loss_without_fractions}, tessera::detail::described_tensor(loss));
}

TESSERA_INLINE at::Tensor loss_scaler::scaled(const at::Tensor& loss) const {
  check_loss(loss);
  return loss * scale_;
}

TESSERA_INLINE tensor<dyn> loss_scaler::scaled(const tensor<dyn>& loss) const {
  check_loss(loss.local());
  return loss * scale_;
}

TESSERA_INLINE judgement loss_scaler::unscale(const team_handle& team,
                                              const tessera::detail::keyed_parameters& parameters, const clipping& to) {
  tessera::detail::clipped_by(0, to.most);  // refused before workers meet
  if (unscaled_ || are_seen(parameters)) throw error(refusal{code::unscaled_twice}, team->label());
  for (const auto& [key, p] : parameters)
    if (engine::loses_by_unscaling(*p) && p->stored().local().requires_grad())
      throw error(refusal{code::half_unscaled}, key);
  judgement now = tessera::detail::judged(team, parameters, to.order, {scale_, to.most});
  now.norm /= scale_;
  if (now.finite) tessera::detail::scale_gradients(parameters, tessera::detail::clipped_by(now.norm, to.most) / scale_);
  unscaled_ = now;
  return now;
}

TESSERA_INLINE void loss_scaler::stepped(const team_handle& team, const tessera::detail::keyed_parameters& parameters) {
  const judgement now = *std::exchange(unscaled_, std::nullopt);
  stepped_.clear();
  for (const auto& [key, p] : parameters)
    if (const at::Tensor& g = p->stored().local().grad(); g.defined())
      stepped_.push_back(
          {c10::weak_intrusive_ptr<at::TensorImpl>(g.getIntrusivePtr()), static_cast<std::uint32_t>(g._version())});
  if (!team->inside()) return;
  at::Tensor scale = at::full({}, scale_, at::kFloat),
             good = at::full({}, std::min(good_steps_, options_.interval - 1), at::kInt);
  at::_amp_update_scale_(scale, good, at::full({}, now.finite ? 0.0 : 1.0, at::kFloat), options_.growth,
                         options_.backoff, options_.interval);
  scale_ = std::max(1.0, scale.item<double>());
  good_steps_ = good.item<index_t>();
}

TESSERA_INLINE bool loss_scaler::are_seen(const tessera::detail::keyed_parameters& parameters) const {
  std::size_t i = 0;
  for (const auto& [key, p] : parameters) {
    const at::Tensor& g = p->stored().local().grad();
    if (!g.defined()) continue;
    if (i == stepped_.size()) return false;
    const seen& then = stepped_[i++];
    if (then.gradient.lock().get() != g.unsafeGetTensorImpl() ||
        then.version != static_cast<std::uint32_t>(g._version()))
      return false;
  }
  return i > 0 && i == stepped_.size();
}

TESSERA_INLINE state_dict loss_scaler::state() const {
  return {{"scale", at::scalar_tensor(scale_, at::kFloat)}, {"good_steps", at::scalar_tensor(good_steps_, at::kLong)}};
}

TESSERA_INLINE void loss_scaler::load_state(const state_dict& numbers) {
  const engine::small_state given(numbers, {{"scale", at::kFloat}, {"good_steps", at::kLong}});
  const double scale = given.at<double>("scale");
  const index_t good = given.at<index_t>("good_steps");
  if (!engine::is_scale(scale) || good < 0 || good > std::numeric_limits<int>::max())
    given.refuse(fmt::format("scale {} after {} good steps", scale, good));
  scale_ = scale;
  good_steps_ = good;
  unscaled_.reset();
  stepped_.clear();
}

}  // namespace tessera::nn
