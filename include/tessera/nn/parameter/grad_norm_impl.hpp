#pragma once

#include <tessera/nn/parameter/grad_norm.hpp>

#include <bit>
#include <cmath>
#include <limits>

namespace tessera::detail {

/// The norm of what has these norms; none that is no number is lost.
inline double norm_of(const std::vector<double>& norms, double order) {
  double most = 0;
  for (const double n : norms)
    if (n > most || std::isnan(n)) most = n;
  if (most == 0 || !std::isfinite(most) || std::isinf(order)) return most;
  double sum = 0;
  for (const double n : norms) sum += std::pow(n / most, order);
  return most * std::pow(sum, 1 / order);
}

/// The norm of this worker's box, also where squares of its elements overflow.
inline double norm_of_box(const at::Tensor& g, double order) {
  const at::Tensor sizes = g.is_complex() ? g.abs() : g;
  const double norm = at::norm(sizes, order, at::kDouble).item<double>();
  if (std::isfinite(norm) || std::isinf(order)) return norm;
  const double most = at::norm(sizes, std::numeric_limits<double>::infinity(), at::kDouble).item<double>();
  return std::isfinite(most) ? most * at::norm(sizes / most, order, at::kDouble).item<double>() : most;
}

/// The norm of what this worker counts of a gradient: copies count on the first that has them, and terms as their sum.
/// A number that is not finite counts on any worker.
inline double part_of_norm(const nn::engine::stepped_tensor& one, double order) {
  const at::Tensor& own = one.gradient();
  const team_handle& team = one.lies->team();
  const layout given = cotangent(one.lies->layout());
  const layout counted = stored_form(given);
  at::Tensor g = own.defined() ? own.detach() : own;
  if (given != counted)  // all workers sum terms, so one without a gradient brings zeros
    g = change_layout(team, given, counted, g.defined() ? g : at::zeros_like(one.leaf()));
  if (!g.defined()) return 0;
  const tensor<dyn> summed = tensor_of(team, counted, g);
  if (summed.local().numel() == 0) return 0;
  const double norm = norm_of_box(summed.local(), order);
  return is_first_copy(summed, placement::invariant) || !std::isfinite(norm) ? norm : 0;
}

/// Whether all workers of a mesh are workers of another.
inline bool covers(const mesh_value& all, const mesh_value& some) {
  for (int i = 0; i < some.size(); ++i)
    if (!all.contains(some.rank(some.at(i)))) return false;
  return true;
}

TESSERA_INLINE nn::judgement judged(const team_handle& team, const stepped_tensors& all, double order,
                                    const std::vector<double>& compared) {
  if (!(order > 0)) throw error(refusal{code::norm_of_no_order}, fmt::format("the order {}", order));
  if (!team->inside()) return {false, std::numeric_limits<double>::quiet_NaN()};
  const at::NoGradGuard no_record;
  std::vector<double> parts;
  for (const nn::engine::stepped_tensor& one : all) {
    if (one.lies->team() != team && !covers(team->mesh(), one.lies->team()->mesh()))
      throw error(refusal{code::other_team}, *one.name);
    parts.push_back(part_of_norm(one, order));
  }
  const auto bits = [](double v) { return std::bit_cast<std::uint64_t>(v); };
  std::vector<std::uint64_t> mine{bits(norm_of(parts, order)), bits(order)};
  for (const double v : compared) mine.push_back(bits(v));
  const std::vector<std::uint64_t> told = team->collect(mine, "summing a norm");
  std::vector<double> each;
  for (std::size_t i = 0; i < told.size(); ++i) {
    const std::size_t which = i % mine.size();
    if (which == 0) each.push_back(std::bit_cast<double>(told[i]));
    else if (told[i] != told[which])
      throw error(refusal{code::workers_disagree, team->mesh().rank(team->mesh().at(0)),
                          team->mesh().rank(team->mesh().at(static_cast<int>(i / mine.size())))},
                  "a norm, its order, by what gradients are scaled, or whose they are");
  }
  const double norm = norm_of(each, order);
  return {std::isfinite(norm), norm};
}

TESSERA_INLINE void scale_gradients(const stepped_tensors& all, double by) {
  const at::NoGradGuard no_record;
  for (const nn::engine::stepped_tensor& one : all)
    if (at::Tensor g = one.gradient(); g.defined()) g.mul_(by);
}

TESSERA_INLINE double clipped_by(double norm, double most) {
  if (!(most >= 0)) throw error(refusal{code::norm_of_no_order}, fmt::format("the norm {}", most));
  const double by = most / (norm + 1e-6);
  return by >= 1 ? 1 : by;
}

TESSERA_INLINE double clip_grad_norm(const team_handle& team, const stepped_tensors& all, double most, double order,
                                     bool error_if_nonfinite) {
  clipped_by(0, most);  // refused before workers meet
  const nn::judgement now = judged(team, all, order, {most});
  if (!team->inside()) return now.norm;
  if (error_if_nonfinite && !now.finite) throw error(refusal{code::norm_not_finite}, fmt::format("{}", now.norm));
  if (const double by = clipped_by(now.norm, most); by != 1) scale_gradients(all, by);
  return now.norm;
}

}  // namespace tessera::detail
