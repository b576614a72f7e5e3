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

/// The norm of what this worker counts of a parameter's gradient: copies count on the first that has them, and terms as
/// their sum.
inline double part_of_norm(const nn::parameter& p, double order) {
  p.check_reduced();
  const at::Tensor g = p.stored().local().grad();
  if (!g.defined()) return 0;
  const layout given = cotangent(p.stored().layout());
  const layout counted = stored_form(given);
  const tensor<dyn> summed =
      tensor_of(p.stored().team(), counted, change_layout(p.stored().team(), given, counted, g.detach()));
  if (!is_first_copy(summed, placement::invariant) || g.numel() == 0) return 0;
  const at::Tensor& own = summed.local();
  return at::norm(own.is_complex() ? own.abs() : own, order, at::kDouble).item<double>();
}

/// Whether all workers of a mesh are workers of another.
inline bool covers(const mesh_value& all, const mesh_value& some) {
  for (int i = 0; i < some.size(); ++i)
    if (!all.contains(some.rank(some.at(i)))) return false;
  return true;
}

TESSERA_INLINE double grad_norm(const team_handle& team, const keyed_parameters& parameters, double order,
                                double most) {
  if (!(order > 0) || !(most >= 0))
    throw error(refusal{code::norm_of_no_order}, fmt::format("norm {} of order {}", most, order));
  if (!team->inside()) return std::numeric_limits<double>::quiet_NaN();
  const at::NoGradGuard no_record;
  std::vector<double> mine;
  for (const auto& [key, p] : parameters) {
    if (p->stored().team() != team && !covers(team->mesh(), p->stored().team()->mesh()))
      throw error(refusal{code::other_team}, key);
    mine.push_back(part_of_norm(*p, order));
  }
  const auto bits = [](double v) { return std::bit_cast<std::uint64_t>(v); };
  const std::vector<std::uint64_t> all =
      team->collect({bits(norm_of(mine, order)), bits(order), bits(most)}, "summing a norm");
  std::vector<double> each;
  for (std::size_t i = 0; i < all.size(); i += 3) {
    if (all[i + 1] != all[1] || all[i + 2] != all[2])
      throw error(refusal{code::workers_disagree, team->mesh().rank(team->mesh().at(0)),
                          team->mesh().rank(team->mesh().at(static_cast<int>(i / 3)))},
                  "a norm, and its order");
    each.push_back(std::bit_cast<double>(all[i]));
  }
  return norm_of(each, order);
}

TESSERA_INLINE double clip_grad_norm(const team_handle& team, const keyed_parameters& parameters, double most,
                                     double order, bool error_if_nonfinite) {
  const double norm = grad_norm(team, parameters, order, most);
  if (!team->inside()) return norm;
  if (error_if_nonfinite && !std::isfinite(norm)) throw error(refusal{code::norm_not_finite}, fmt::format("{}", norm));
  const double scale = most / (norm + 1e-6);
  const at::NoGradGuard no_record;
  for (const auto& [key, p] : parameters)
    if (at::Tensor g = p->stored().local().grad(); g.defined() && !(scale >= 1)) g.mul_(scale);
  return norm;
}

}  // namespace tessera::detail
