#pragma once

#include <tessera/nn/groups_here.hpp>
#include <tessera/nn/normalisation.hpp>

#include <ATen/OpMathType.h>
#include <torch/csrc/autograd/engine.h>

namespace tessera::detail {

/// The distance of 1 from the next number of an element.
inline double epsilon_of(at::ScalarType e) {
  switch (e) {
    case at::kHalf: return std::numeric_limits<at::Half>::epsilon();
    case at::kBFloat16: return std::numeric_limits<at::BFloat16>::epsilon();
    case at::kFloat: return std::numeric_limits<float>::epsilon();
    default: return std::numeric_limits<double>::epsilon();
  }
}

/// A normalisation of groups whose parts several workers have, or whose statistics are kept, on one of them.
struct cut_normalisation {
  std::shared_ptr<const groups_here> groups;
  double eps = 0;
  bool centred = true;
  bool ties = false;  ///< some worker has an empty box

  /// The moments and the result in double, by functions of LibTorch wherever tensors lie, with a graph of them: what the kernels compute, and its
  /// derivatives of every order.
  std::pair<moments, at::Tensor> composed(const std::vector<at::Tensor>& operands) const {
    const at::Tensor wide = operands[0].to(at::kDouble);
    const at::Tensor nothing = at::zeros({}, wide.options());
    const moments part = groups->joined(centred ? moments{wide, nothing} : moments{nothing, at::square(wide)}, 1);
    const moments m = groups->whole(part, groups->cut() ? groups->exchanged(groups->sent(part)) : nothing);
    at::Tensor y = (centred ? wide - groups->spread(m.mean) : wide) * groups->spread(at::rsqrt(m.squares + eps));
    if (operands[1].defined()) y = y * groups->along(operands[1].to(at::kDouble));
    if (operands[2].defined()) y = y + groups->along(operands[2].to(at::kDouble));
    y = y.to(operands[0].scalar_type());
    if (ties) y = tied(y, {operands.begin(), std::find_if(operands.begin(), operands.end(), [](const at::Tensor& x) { return !x.defined(); })});
    return {m, y};
  }
};

/// What kernels take of a call: a box of float or double, and numbers of its rows or columns.
class normalised_box {
 public:
  normalised_box(const cut_normalisation& of, const at::Tensor& x)
      : of_(of), sizes_(of.groups->lines(x)), form_(of.groups->form(x)), x_(as_computed(x)) {}

  const row_form& form() const { return form_; }
  const at::Tensor& x() const { return x_; }
  /// Contiguous, in the type that is computed in: of half types float.
  static at::Tensor as_computed(const at::Tensor& x) { return x.to(at::toOpMathType(x.scalar_type())).contiguous(); }
  /// Calls f with kernels.
  template <class F>
  auto with_kernels(const F& f) const {
    return x_.scalar_type() == at::kDouble ? f(normalised_rows<double>(form_)) : f(normalised_rows<float>(form_));
  }

  /// A number for each row or column, as it meets the box.
  at::Tensor as_lines(const at::Tensor& numbers) const { return numbers.view(sizes_); }
  /// What groups have, for each row or column.
  at::Tensor of_groups(const at::Tensor& t) const { return of_.groups->spread(t).expand(sizes_).contiguous().view({-1}); }
  /// The same, as kernels take it.
  at::Tensor numbers(const at::Tensor& t) const { return of_groups(t).to(x_.scalar_type()); }
  /// A parameter for each row or column, as kernels take it; undefined, a number that they take for each row.
  at::Tensor parameter(const at::Tensor& w, double otherwise) const {
    if (!w.defined()) return form_.parameters_along ? at::full({form_.columns}, otherwise, x_.options()) : w;
    const at::Tensor as = w.to(x_.scalar_type());
    return form_.parameters_along ? as.contiguous().view({-1}) : of_.groups->along(as).expand(sizes_).contiguous().view({-1});
  }
  standard by(const at::Tensor& mean, const at::Tensor& scale) const {
    const at::Tensor wide = of_groups(mean);
    const at::Tensor origin = wide.to(x_.scalar_type());
    const at::Tensor scales = of_groups(scale);
    return {origin, scales.to(x_.scalar_type()), ((origin - wide) * scales).to(x_.scalar_type())};
  }

 private:
  const cut_normalisation& of_;
  std::vector<index_t> sizes_;
  row_form form_;
  at::Tensor x_;
};

/// The gradient of a normalisation: sums over groups of the result's gradient and of its products with what was standardised, exchanged once by the way
/// back of what the forward exchanged. A gradient that is itself differentiated is that of `composed`.
class normalised_backward final : public torch::autograd::Node {
 public:
  normalised_backward(cut_normalisation of, const std::vector<at::Tensor>& operands, at::Tensor mean, at::Tensor scale, decltype(torch::autograd::Edge::function) exchange)
      : of_(std::move(of)), mean_(std::move(mean)), scale_(std::move(scale)), exchange_(std::move(exchange)) {
    for (const at::Tensor& x : operands) {
      saved_.emplace_back(x, false);
      add_next_edge(x.defined() ? torch::autograd::impl::gradient_edge(x) : torch::autograd::Edge());
    }
  }

  torch::autograd::variable_list apply(torch::autograd::variable_list&& gradients) override {
    std::vector<at::Tensor> operands;
    for (const torch::autograd::SavedVariable& one : saved_) operands.push_back(one.unpack());
    const at::Tensor g = gradients[0].defined() ? gradients[0] : at::zeros_like(operands[0]);
    return c10::GradMode::is_enabled() ? differentiated(operands, g) : found(operands, g);
  }
  void release_variables() override {
    for (torch::autograd::SavedVariable& x : saved_) x.reset_data();
  }
  std::string name() const override { return "tessera::normalisation"; }

 private:
  torch::autograd::variable_list found(const std::vector<at::Tensor>& operands, const at::Tensor& gradient) {
    const groups_here& groups = *of_.groups;
    const at::Tensor& weight = operands[1];
    const normalised_box box(of_, operands[0]);
    const at::Tensor g = box.as_computed(gradient);
    const standard by = box.by(mean_, scale_);
    const bool along = box.form().parameters_along && !box.form().groups_along;  // parameters have numbers of their own
    const at::Tensor w = box.parameter(weight, 1);
    const auto [of_rows, of_columns] = box.with_kernels([&](const auto& kernels) { return kernels.products(box.x(), g, by, w); });
    const at::Tensor sums = box.form().groups_along ? of_columns : of_rows;
    torch::autograd::variable_list all(3);
    for (const int i : {1, 2})
      if (operands[static_cast<std::size_t>(i)].defined())
        all[static_cast<std::size_t>(i)] = groups.of_parameters(along ? of_columns[2 - i] : box.as_lines(sums[2 - i]), operands[static_cast<std::size_t>(i)]);
    if (!task_should_compute_output(0)) return all;
    const auto of_groups = [&](int i) {
      const at::Tensor lines = box.as_lines(sums[i]);
      return groups.summed(along || !weight.defined() ? lines : lines * groups.along(weight.to(at::kDouble)));
    };
    at::Tensor parts = of_.centred ? at::stack({of_groups(1), of_groups(0)}) : of_groups(1).unsqueeze(0);
    if (exchange_) parts = groups.all_sums(parts, *exchange_);
    const at::Tensor share = scale_ / -std::max(1.0, groups.count());
    const at::Tensor slope = box.numbers(parts[0] * share);
    const at::Tensor offset = of_.centred ? box.numbers(parts[1] * share) : at::Tensor();
    all[0] = box.with_kernels([&](const auto& kernels) { return kernels.gradient(box.x(), g, by, w, slope, offset); }).to(gradient.scalar_type());
    return all;
  }

  torch::autograd::variable_list differentiated(std::vector<at::Tensor> operands, const at::Tensor& gradient) {
    torch::autograd::edge_list to;
    for (at::Tensor& x : operands) {
      if (!x.defined() || !x.requires_grad()) continue;
      x = at::alias(x);
      to.push_back(torch::autograd::impl::gradient_edge(x));
    }
    const at::Tensor y = of_.composed(operands).second;
    const auto found = torch::autograd::Engine::get_default_engine().execute({torch::autograd::impl::gradient_edge(y)}, {gradient}, true, true, false, to);
    torch::autograd::variable_list all(operands.size());
    auto next = found.begin();
    for (std::size_t i = 0; i < all.size(); ++i)
      if (operands[i].defined() && operands[i].requires_grad()) all[i] = *next++;
    return all;
  }

  cut_normalisation of_;
  std::vector<torch::autograd::SavedVariable> saved_;
  at::Tensor mean_;
  at::Tensor scale_;
  decltype(torch::autograd::Edge::function) exchange_;  ///< of what parts sent
};

/// The moments of all groups, and the result by them: by kernels on the host.
inline std::pair<moments, at::Tensor> normalised(const cut_normalisation& of, const std::vector<at::Tensor>& operands) {
  const at::Tensor& x = operands[0];
  if (x._fw_grad(0).defined()) throw error(refusal{code::forward_mode});
  if (!x.device().is_cpu()) return of.composed(operands);
  const bool tracked = c10::GradMode::is_enabled() && std::any_of(operands.begin(), operands.end(), [](const at::Tensor& t) { return t.defined() && t.requires_grad(); });
  const bool returns = tracked && x.requires_grad();
  const c10::AutoGradMode no_record(false);
  const groups_here& groups = *of.groups;
  const normalised_box box(of, x);
  decltype(torch::autograd::Edge::function) back;
  const moments m = [&] {
    const at::Tensor of_lines = box.with_kernels([&](const auto& kernels) { return kernels.moments(box.x(), of.centred); });
    const moments part = groups.joined({box.as_lines(of_lines[0]), box.as_lines(of_lines[1])}, box.form().elements_of_a_line());
    if (!groups.cut()) return groups.whole(part, {});
    const c10::AutoGradMode record(returns);
    const at::Tensor sent = groups.exchanged(groups.sent(part).set_requires_grad(returns));
    if (returns) back = sent.grad_fn();
    if (returns) back->set_next_edges({torch::autograd::Edge()});  // which would keep what was sent
    return groups.whole(part, sent.detach());
  }();
  const at::Tensor scale = at::rsqrt(m.squares + of.eps);
  const at::Tensor y = [&] {
    const standard by = box.by(m.mean, scale);
    return box.with_kernels([&](const auto& kernels) { return kernels.result(box.x(), by, box.parameter(operands[1], 1), box.parameter(operands[2], 0)); });
  }().to(x.scalar_type());
  if (tracked) torch::autograd::set_history(y, make_node<normalised_backward>(of, operands, m.mean, scale, std::move(back)));
  return {m, y};
}

}  // namespace tessera::detail

namespace tessera::nn {

TESSERA_INLINE at::Tensor forward(const call& c, const normalisation& what) {
  const at::Tensor& x = c.operand();
  using tessera::detail::groups_here;
  using shared_groups = std::shared_ptr<const groups_here>;
  const shared_groups& shared = c.layer.once<shared_groups>([&] { return std::make_shared<const groups_here>(c.layer, what); });
  const groups_here& groups = *shared;
  const bool running = what.tracked && !c.training;
  if (what.groups.by_channel && !what.groups.channels.said() && !running && groups.count() == 1) throw error(refusal{code::one_value_a_channel}, c.layer.team->label());
  std::vector<at::Tensor> operands{x};
  for (std::size_t i = 0; i < c.state.parameters.size(); ++i) operands.push_back(c.weight(i));
  const auto given = [&](std::size_t i) { return i < operands.size() ? std::optional(operands[i]) : std::nullopt; };
  const auto kept = [&](std::size_t i) { return what.tracked ? std::optional(c.buffer(i).value()) : std::nullopt; };
  double share = what.momentum;
  if (what.tracked && c.training) {
    if (!what.groups.by_sample || what.cumulative) c.buffer(2).set(c.buffer(2).value() + 1);
    if (what.cumulative) share = 1 / c.buffer(2).value().item<double>();
  }
  const double eps = what.eps == eps_of_element ? tessera::detail::epsilon_of(x.scalar_type()) : what.eps;
  if (running || (!groups.cut() && !what.averages())) {
    const auto alone = [&] {
      if (!what.centred) return at::rms_norm(x, groups.sizes(x), given(1), eps);
      if (!what.groups.by_channel) return at::layer_norm(x, groups.sizes(x), given(1), given(2), eps);
      if (what.groups.by_sample && !running) return at::group_norm(x, groups.of_channels(x), given(1), given(2), eps, false);
      // Where extents of 1 let strides pass as channels-last ones, LibTorch's backward takes those of the gradient for them too.
      return at::batch_norm(x.contiguous(), given(1), given(2), kept(0), kept(1), !running, share, eps, false);
    };
    return c.layer.tied(x.numel() > 0 ? alone() : tessera::detail::empty_result(c.layer.outputs, operands), operands);
  }
  std::vector<at::Tensor> given_or_not = operands;
  given_or_not.resize(3);
  const auto [m, y] = tessera::detail::normalised({shared, eps, what.centred, c.layer.some_are_empty}, given_or_not);
  if (what.tracked && c.training && (groups.count() > 0 || (what.averages() && groups.samples() == 0))) {
    const at::NoGradGuard no_record;
    const auto blend = [&](std::size_t i, const at::Tensor& now) {
      const at::Tensor before = c.buffer(i).value().to(at::kDouble);
      c.buffer(i).set((1 - share) * before + share * now.reshape(before.sizes()));
    };
    const tessera::detail::moments now = what.averages() ? groups.averaged(m) : m;
    blend(0, now.mean);
    blend(1, now.squares * (groups.count() / (groups.count() - 1)));
  }
  return c.layer.tied(y, operands);
}

}  // namespace tessera::nn
