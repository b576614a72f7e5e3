#pragma once

#include <tessera/nn/check_indices.hpp>
#include <tessera/nn/cross_entropy.hpp>

namespace tessera::detail {

/// What is left of the logits' layout for one number a sample; what cut the classes gets another role.
inline layout per_sample(const layout& logits, axis_role classes) {
  layout x;
  x.mesh = logits.mesh;
  for (int d = 0; d < logits.dims.count; ++d)
    if (d != 1) x.dims.push(logits.dims[d]);
  for (axis_role r : logits.roles) {
    if (r.kind == role::cut && r.dimension == 1) r = classes;
    else if (r.kind == role::cut && r.dimension > 1) --r.dimension;
    x.roles.push(r);
  }
  return x;
}

/// A few numbers a sample, side by side: one exchange serves them all.
inline layout rows_of(layout x, index_t count) {
  dimension rows;
  rows.extent = count;
  static_vector<dimension, max_dimensions> dims;
  dims.push(rows);
  for (const auto& d : x.dims) dims.push(d);
  x.dims = dims;
  for (auto& r : x.roles)
    if (r.kind == role::cut) ++r.dimension;
  return x;
}

inline void check_options(const nn::cross_entropy_options& how, index_t classes, const std::string& where) {
  const auto weights = static_cast<index_t>(how.weight.size());
  if (weights != 0 && weights != classes) throw error(refusal{code::class_weights_differ, weights, classes}, where);
  if (!(how.label_smoothing >= 0 && how.label_smoothing <= 1)) throw error(refusal{code::no_probability}, where);
}

}  // namespace tessera::detail

namespace tessera::nn {

TESSERA_INLINE tensor<dyn> cross_entropy(const tensor<dyn>& logits, const tensor<dyn>& labels, const cross_entropy_options& how, call_site at) {
  const team_handle& team = logits.team();
  const during now(*team, {.what = "cross_entropy", .at = at});
  const layout& x = logits.layout();
  if (labels.team()->shared_carrier() != team->shared_carrier()) throw error(refusal{code::other_team}, team->label());
  check(detail::check_loss({x, logits.type()}, {labels.layout(), labels.type()}), team->label());
  const index_t classes = x.dims[1].extent;
  detail::check_options(how, classes, team->label());
  const at::Tensor ignored = labels.local() == how.ignore_index;
  const at::Tensor label = labels.local().masked_fill(ignored, 0);
  const at::Tensor local = is_half(logits.type()) ? logits.local().to(at::kFloat) : logits.local();
  const interval mine = box_of(x, team->rank())[1];
  const at::Tensor weight = how.weight.empty() ? at::Tensor() : at::tensor(how.weight, local.options().requires_grad(false));

  at::Tensor most;
  {
    const at::NoGradGuard constant;
    const at::Tensor none = label.to(local.scalar_type()).fill_(-std::numeric_limits<double>::infinity());
    most = change_layout(team, detail::per_sample(x, partial_by(combine::max)), detail::per_sample(x, {}),
                         local.size(1) > 0 ? at::amax(local.detach(), 1) : none);
  }
  std::vector<at::Tensor> rows{at::exp(local - most.unsqueeze(1)).sum(1)};
  rows.push_back(at::zeros_like(rows[0]));
  if (local.size(1) > 0) {
    const at::Tensor place = label - mine.lo;
    const at::Tensor here = at::logical_and(place >= 0, place < mine.size());
    const at::Tensor score = local.gather(1, place.clamp(0, mine.size() - 1).unsqueeze(1)).squeeze(1);
    rows[1] = at::where(here, score, rows[1]);  // not a product: another class may be masked with -inf
  }
  if (how.label_smoothing > 0) {
    std::vector<index_t> along(static_cast<std::size_t>(local.dim()), 1);
    along[1] = mine.size();
    rows.push_back((weight.defined() ? local * weight.narrow(0, mine.lo, mine.size()).view(along) : local).sum(1));
  }
  const auto count = static_cast<index_t>(rows.size());
  const at::Tensor all = change_layout(team, detail::rows_of(detail::per_sample(x, {role::partial}), count),
                                       detail::rows_of(detail::per_sample(x, {role::invariant}), count), at::stack(rows));
  const at::Tensor total = at::log(all[0]) + most;
  const at::Tensor share = weight.defined() ? weight.index_select(0, label.clamp(0, classes - 1).flatten()).view(label.sizes()) : at::ones_like(most);
  at::Tensor each = share * (total - all[1]);
  if (how.label_smoothing > 0) {
    const double whole = weight.defined() ? weight.sum().item<double>() : static_cast<double>(classes);
    each = (1 - how.label_smoothing) * each + how.label_smoothing / static_cast<double>(classes) * (whole * total - all[2]);
  }
  const auto added = [&](const at::Tensor& one) { return one.masked_fill(ignored, 0).sum(at::kDouble); };
  const at::Tensor wrong = (label < 0).logical_or(label >= classes);

  layout terms;
  terms.mesh = x.mesh;
  for (const axis_role& r : detail::per_sample(x, {role::invariant}).roles)
    terms.roles.push(r.kind == role::cut ? axis_role{role::partial} : r);
  layout everywhere = terms;
  for (axis_role& r : everywhere.roles) r = {role::invariant};
  const at::Tensor sums = change_layout(team, detail::rows_of(terms, 3), detail::rows_of(everywhere, 3), at::stack({added(each), added(share), added(wrong)}));
  if (sums[2].item<double>() > 0) detail::check_indices(team, label, classes, code::label_out_of_range);
  const at::Tensor loss = how.reduction == reduction::mean ? sums[0] / sums[1].detach() : sums[0];
  return tessera::detail::tensor_of(team, everywhere, loss.to(logits.local().scalar_type()));
}

}  // namespace tessera::nn
