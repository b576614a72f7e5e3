#pragma once

#include <tessera/nn/cross_entropy.hpp>

namespace tessera::detail {

/// What is left of the logits' layout for one number a sample; what cut the classes gets another role.
inline layout per_sample(const layout& logits, axis_role classes) {
  layout x;
  x.mesh = logits.mesh;
  x.dims.push(logits.dims[0]);
  for (const axis_role& r : logits.roles)
    x.roles.push(r.kind == role::cut && r.dimension == 1 ? classes : r);
  return x;
}

/// Two numbers a sample, side by side: one exchange serves both.
inline layout two_rows(layout x) {
  dimension two;
  two.extent = 2;
  static_vector<dimension, max_dimensions> dims;
  dims.push(two);
  for (const auto& d : x.dims) dims.push(d);
  x.dims = dims;
  for (auto& r : x.roles)
    if (r.kind == role::cut) ++r.dimension;
  return x;
}

inline void check_labels(const at::Tensor& labels, index_t classes, const std::string& where) {
  if (labels.numel() == 0) return;
  const index_t least = labels.min().item<index_t>();
  const index_t most = labels.max().item<index_t>();
  if (least < 0 || most >= classes) throw error(refusal{code::label_out_of_range, least < 0 ? least : most, classes}, where);
}

}  // namespace tessera::detail

namespace tessera::nn {

TESSERA_INLINE tensor<dyn> cross_entropy(const tensor<dyn>& logits, const tensor<dyn>& labels, call_site at) {
  const team_handle& team = logits.team();
  const during now(*team, {.what = "cross_entropy", .at = at});
  const layout& x = logits.layout();
  if (labels.team()->shared_carrier() != team->shared_carrier()) throw error(refusal{code::other_team}, team->label());
  check(detail::check_loss({x, logits.type()}, {labels.layout(), labels.type()}), team->label());
  detail::check_labels(labels.local(), x.dims[1].extent, team->label());
  const bool half = is_half(logits.type());
  const at::Tensor local = half ? logits.local().to(at::kFloat) : logits.local();
  const interval mine = box_of(x, team->rank())[1];

  at::Tensor most;
  {
    const at::NoGradGuard constant;
    at::Tensor here = local.size(1) > 0 ? at::amax(local.detach(), 1)
                                        : at::full({local.size(0)}, -std::numeric_limits<double>::infinity(), local.options());
    most = change_layout(team, detail::per_sample(x, partial_by(combine::max)), detail::per_sample(x, {}), here);
  }
  const at::Tensor total = at::exp(local - most.unsqueeze(1)).sum(1);
  at::Tensor label_score = at::zeros_like(total);
  if (local.size(1) > 0) {
    const at::Tensor place = labels.local() - mine.lo;
    const at::Tensor here = at::logical_and(place >= 0, place < mine.size());
    const at::Tensor score = local.gather(1, place.clamp(0, mine.size() - 1).unsqueeze(1)).squeeze(1);
    label_score = at::where(here, score, label_score);  // not a product: another class may be masked with -inf
  }
  const at::Tensor both = change_layout(team, detail::two_rows(detail::per_sample(x, {role::partial})),
                                        detail::two_rows(detail::per_sample(x, {role::invariant})), at::stack({total, label_score}));
  const at::Tensor each = at::log(both[0]) + most - both[1];

  layout terms;
  terms.mesh = x.mesh;
  for (const axis_role& r : detail::per_sample(x, {role::invariant}).roles)
    terms.roles.push(r.kind == role::cut ? axis_role{role::partial} : r);
  layout everywhere = terms;
  for (auto& r : everywhere.roles) r = {role::invariant};
  const at::Tensor mean = each.sum() / static_cast<double>(x.dims[0].extent);
  return tessera::detail::tensor_of(team, everywhere, change_layout(team, terms, everywhere, mean).to(logits.local().scalar_type()));
}

}  // namespace tessera::nn
