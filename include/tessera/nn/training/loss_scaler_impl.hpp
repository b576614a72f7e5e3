#pragma once

#include <tessera/nn/refusals.hpp>
#include <tessera/nn/training/loss_scaler.hpp>
#include <tessera/nn/training/small_state.hpp>

#include <ATen/ops/_amp_update_scale.h>

#include <algorithm>
#include <cmath>
#include <unordered_set>

namespace tessera::nn {

namespace engine {

/// LibTorch keeps a scale as a float.
inline bool is_scale(double s) { return s >= 1 && s <= static_cast<double>(std::numeric_limits<float>::max()); }

/// Has a gradient that unscaling rounds to zero where the scale kept it.
inline bool loses_by_unscaling(const at::Tensor& leaf) {
  return leaf.scalar_type() == at::kHalf && leaf.requires_grad();
}

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

TESSERA_INLINE bool loss_scaler::steps_others(const std::vector<at::Tensor>& leaves,
                                              const tessera::detail::stepped_tensors& all) {
  std::unordered_set<const at::TensorImpl*> known;
  for (const engine::stepped_tensor& one : all) known.insert(one.leaf().unsafeGetTensorImpl());
  return std::any_of(leaves.begin(), leaves.end(), [&](const at::Tensor& leaf) {
    return leaf.requires_grad() && known.count(leaf.unsafeGetTensorImpl()) == 0;
  });
}

TESSERA_INLINE void loss_scaler::refuse_others(const team_handle& team) {
  throw error(refusal{code::scaled_leaves_differ}, team->label());
}

// An optimizer of other leaves is refused where workers meet: one of them may have it alone.
TESSERA_INLINE judgement loss_scaler::unscale(const team_handle& team, const tessera::detail::stepped_tensors& all,
                                              const clipping& to, bool others) {
  tessera::detail::clipped_by(0, to.most);  // refused before workers meet
  if (unscaled_ || are_seen(all)) throw error(refusal{code::unscaled_twice}, team->label());
  for (const engine::stepped_tensor& one : all)
    if (engine::loses_by_unscaling(one.leaf())) throw error(refusal{code::half_unscaled}, *one.name);
  judgement now = tessera::detail::judged(team, all, to.order, {scale_, to.most, others ? 1.0 : 0.0});
  if (others) refuse_others(team);
  now.norm /= scale_;
  if (now.finite) tessera::detail::scale_gradients(all, tessera::detail::clipped_by(now.norm, to.most) / scale_);
  unscaled_ = now;
  return now;
}

TESSERA_INLINE void loss_scaler::stepped(const team_handle& team, const tessera::detail::stepped_tensors& all) {
  const judgement now = *std::exchange(unscaled_, std::nullopt);
  stepped_.clear();
  for (const engine::stepped_tensor& one : all)
    if (const at::Tensor& g = one.gradient(); g.defined())
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

TESSERA_INLINE bool loss_scaler::are_seen(const tessera::detail::stepped_tensors& all) const {
  std::size_t i = 0;
  for (const engine::stepped_tensor& one : all) {
    const at::Tensor& g = one.gradient();
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
