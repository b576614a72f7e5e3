#pragma once

#include <tessera/operation/typed.hpp>
#include <tessera/tensor/tensor.hpp>

namespace tessera::detail {

/// Logits [n, c] and labels [n] are cut alike along n; the classes may be cut.
inline constexpr signature loss_signature = [] {
  signature s;
  s.kind = linearity::nonlinear;
  s.operands.push(named("nc"));
  s.operands.push(named("n"));
  s.result = named("nc");
  return s;
}();

constexpr refusal check_loss(const layout& logits, const layout& labels) {
  if (logits.dims.count != 2) return refusal{code::layer_takes_other_dimensions, 2, logits.dims.count};
  static_vector<operand, 4> operands;
  operands.push({logits, false});
  operands.push({labels, true});
  return infer(loss_signature, operands).why;
}

/// What is left of the logits' layout for one number a sample; what cut the classes gets another role.
constexpr layout per_sample(const layout& logits, axis_role classes) {
  layout x;
  x.mesh = logits.mesh;
  x.dims.push(logits.dims[0]);
  for (const axis_role& r : logits.roles)
    x.roles.push(r.kind == role::cut && r.dimension == 1 ? classes : r);
  return x;
}

/// Two numbers a sample, side by side: one exchange serves both.
constexpr layout two_rows(layout x) {
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

/// The mean over the batch of −log softmax(logits)[label]; invariant over the mesh.
///
///   m = maxₖ xₖ (a constant),  s = Σₖ exp(xₖ − m),  loss = mean(log s + m − x_label)
///
/// Classes may be cut: m is combined by maximum, s and x_label are summed in one exchange to an invariant, so backward moves
/// nothing for them.
inline tensor<dyn> cross_entropy(const tensor<dyn>& logits, const tensor<dyn>& labels) {
  const team_handle& team = logits.team();
  const layout& x = logits.layout();
  check(detail::check_loss(x, labels.layout()), team->label());
  detail::check_labels(labels.local(), x.dims[1].extent, team->label());
  const at::Tensor& local = logits.local();
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
  return {team, everywhere, change_layout(team, terms, everywhere, mean)};
}

}  // namespace tessera::nn

namespace tessera::detail {

template <class Logits>
struct loss_value {
  static constexpr tensor_value value = [] {
    tensor_value t;
    t.layout.mesh = value_of<Logits>.layout.mesh;
    for (int a = 0; a < t.layout.mesh.axes.count; ++a) t.layout.roles.push({role::invariant});
    t.element = value_of<Logits>.element;
    return t;
  }();
};

template <class Logits, class Labels>
struct loss_verdict {
  static constexpr refusal value = first_of(described<Logits>::verdict_source::value, described<Labels>::verdict_source::value,
                                            check_loss(value_of<Logits>.layout, value_of<Labels>.layout));
};

}  // namespace tessera::detail

namespace tessera::nn {

template <class P, class S, class E, class Q, class R>
auto cross_entropy(const tensor<P, S, E>& logits, const tensor<Q, R, std::int64_t>& labels) {
  using verdict = verdict_of<detail::loss_verdict<tensor<P, S, E>, tensor<Q, R, std::int64_t>>>;
  verdict::template refuse<verdict>();
  if constexpr (verdict::ok) {
    using Loss = typename detail::tensor_named<tensor<P, S, E>, detail::loss_value<tensor<P, S, E>>>::type;
    return Loss(cross_entropy(logits.dynamic(), labels.dynamic()));
  } else {
    return detail::refused_like<tensor<P, S, E>>();
  }
}

}  // namespace tessera::nn
