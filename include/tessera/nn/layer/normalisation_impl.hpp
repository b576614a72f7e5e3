#pragma once

#include <tessera/nn/layer/local_groups.hpp>
#include <tessera/nn/layer/normalisation.hpp>
#include <tessera/tensor/autograd/recomposed.hpp>

#include <ATen/OpMathType.h>

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
  std::shared_ptr<const local_groups> groups;
  double eps = 0;
  bool centred = true;
  bool ties = false;  ///< some worker has an empty box

  /// The moments and the result in double, by LibTorch's differentiable functions, on any device: what the kernels
  /// compute, with derivatives of every order.
  std::pair<moments, at::Tensor> composed(const std::vector<at::Tensor>& operands) const {
    const at::Tensor wide = operands[0].to(at::kDouble);
    const at::Tensor nothing = at::zeros({}, wide.options());
    const moments part = groups->joined(centred ? moments{wide, nothing} : moments{nothing, at::square(wide)});
    const moments m = groups->whole(part, groups->cut() ? groups->exchanged(groups->sent(part)) : nothing);
    at::Tensor y = (centred ? wide - groups->spread(m.mean) : wide) * groups->spread(at::rsqrt(m.squares + eps));
    if (operands[1].defined()) y = y * groups->along(operands[1].to(at::kDouble));
    if (operands[2].defined()) y = y + groups->along(operands[2].to(at::kDouble));
    y = y.to(operands[0].scalar_type());
    if (ties)
      y = depends_on_all(y, {operands.begin(), std::find_if(operands.begin(), operands.end(),
                                                            [](const at::Tensor& x) { return !x.defined(); })});
    return {m, y};
  }
};

/// A box as kernels take it, contiguous and in the type that is computed in: of half types float.
inline at::Tensor as_computed(const at::Tensor& x) { return x.to(at::toOpMathType(x.scalar_type())).contiguous(); }

/// Calls f with a number of the type that is computed in.
template <class F>
auto in_computed(const at::Tensor& x, const F& f) {
  return at::toOpMathType(x.scalar_type()) == at::kDouble ? f(double{}) : f(float{});
}

/// A parameter for each row or column, as kernels take it; undefined, a number that they take for each row.
template <class Real>
at::Tensor parameter_of_lines(const line_groups& lines, const at::Tensor& w, Real otherwise) {
  const row_shape& shape = lines.shape;
  if (!w.defined() && !shape.parameters_along) return w;
  if (!w.defined()) return at::full({shape.columns}, otherwise, c10::CppTypeToScalarType<Real>::value);
  const at::Tensor of_columns = w.to(c10::CppTypeToScalarType<Real>::value).contiguous();
  if (shape.parameters_along) return of_columns;
  const at::Tensor made = lines.of_lines<Real>();
  const Real* const from = of_columns.const_data_ptr<Real>();
  Real* const to = made.mutable_data_ptr<Real>();
  for (index_t i = 0; i < made.numel(); ++i) to[i] = from[i % w.numel()];  // channels come again with each sample
  return made;
}

/// The gradient of a parameter, of sums over columns, or over lines whose channels come again with each sample.
inline at::Tensor gradient_of_parameter(const double* sums, index_t lines, const at::Tensor& w) {
  const at::Tensor made = empty_box(w.sizes(), at::kDouble);
  double* const to = made.mutable_data_ptr<double>();
  std::fill_n(to, made.numel(), 0.0);
  for (index_t i = 0; i < lines; ++i) to[i % made.numel()] += sums[i];
  return made.to(w.scalar_type());
}

/// The gradient of a normalisation. It sums over groups the result's gradient and its products with the standardised
/// elements. The adjoint of the forward's exchange exchanges these sums once. A gradient that is itself differentiated
/// is that of `composed`.
class normalised_backward final : public torch::autograd::Node {
 public:
  normalised_backward(cut_normalisation of, const std::vector<at::Tensor>& operands, at::Tensor mean, at::Tensor scale,
                      decltype(torch::autograd::Edge::function) exchange)
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
    return in_computed(operands[0], [&](auto zero) { return found_in<decltype(zero)>(operands, gradient); });
  }
  template <class Real>
  torch::autograd::variable_list found_in(const std::vector<at::Tensor>& operands, const at::Tensor& gradient) {
    const local_groups& groups = *of_.groups;
    const line_groups& lines = groups.lines();
    const normalised_rows<Real> kernels(lines.shape);
    const at::Tensor x = as_computed(operands[0]), g = as_computed(gradient);
    const standard by = lines.standardising<Real>(mean_, scale_);
    const bool along =
        lines.shape.parameters_along && !lines.shape.groups_along;  // parameters have numbers of their own
    const at::Tensor w = parameter_of_lines<Real>(lines, operands[1], 1);
    const auto [of_rows, of_columns] = kernels.products(x, g, by, w);
    const at::Tensor& of_groups = lines.shape.groups_along ? of_columns : of_rows;
    const at::Tensor& of_parameters = along ? of_columns : of_groups;
    torch::autograd::variable_list all(3);
    for (const std::size_t i : {std::size_t{1}, std::size_t{2}})
      if (operands[i].defined())
        all[i] = gradient_of_parameter(of_parameters.const_data_ptr<double>() + (i == 1 ? of_parameters.size(1) : 0),
                                       of_parameters.size(1), operands[i]);
    if (!task_should_compute_output(0)) return all;
    const index_t sent = of_.centred ? 2 : 1;
    at::Tensor parts = lines.numbers(sent);
    double* const sums = parts.mutable_data_ptr<double>();
    std::fill_n(sums, parts.numel(), 0.0);
    const Real* const weights = along || !w.defined() ? nullptr : w.const_data_ptr<Real>();
    for (index_t k = 0; k < sent; ++k)  // of products, and of the gradient
      lines.add_up(of_groups.const_data_ptr<double>() + (1 - k) * of_groups.size(1), weights,
                   sums + k * static_cast<index_t>(lines.groups()));
    if (exchange_) parts = groups.all_sums(parts, *exchange_).contiguous();
    std::vector<double> share(lines.groups());
    for (std::size_t i = 0; i < share.size(); ++i)
      share[i] = scale_.const_data_ptr<double>()[i] / -std::max(1.0, groups.count());
    const double* const of_all = parts.const_data_ptr<double>();
    const at::Tensor slope = lines.handed_out<Real>(of_all, share.data());
    const at::Tensor offset =
        of_.centred ? lines.handed_out<Real>(of_all + lines.groups(), share.data()) : at::Tensor();
    all[0] = kernels.gradient(x, g, by, w, slope, offset).to(gradient.scalar_type());
    return all;
  }

  torch::autograd::variable_list differentiated(const std::vector<at::Tensor>& operands, const at::Tensor& gradient) {
    return gradients_of([this](const std::vector<at::Tensor>& x) { return of_.composed(x).second; }, operands,
                        gradient);
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
  const bool tracked =
      c10::GradMode::is_enabled() && std::any_of(operands.begin(), operands.end(),
                                                 [](const at::Tensor& t) { return t.defined() && t.requires_grad(); });
  const bool returns = tracked && x.requires_grad();
  const c10::AutoGradMode no_record(false);
  const local_groups& groups = *of.groups;
  const line_groups& lines = groups.lines();
  decltype(torch::autograd::Edge::function) back;
  at::Tensor scale;
  const auto [m, y] = in_computed(x, [&](auto zero) {
    using Real = decltype(zero);
    const normalised_rows<Real> kernels(lines.shape);
    const at::Tensor box = as_computed(x);
    at::Tensor sent = lines.part(kernels.moments(box, of.centred));
    if (groups.cut()) {
      const c10::AutoGradMode record(returns);
      sent = groups.exchanged(sent.set_requires_grad(returns));
      if (returns) back = sent.grad_fn();
      if (returns) back->set_next_edges({torch::autograd::Edge()});  // which would keep what was sent
      sent = sent.detach();
    }
    const moments found = lines.whole(sent);
    scale = lines.scale(found.squares, of.eps);
    const standard by = lines.standardising<Real>(found.mean, scale);
    return std::pair(found, kernels
                                .result(box, by, parameter_of_lines<Real>(lines, operands[1], 1),
                                        parameter_of_lines<Real>(lines, operands[2], 0))
                                .to(x.scalar_type()));
  });
  if (tracked)
    torch::autograd::set_history(y, make_node<normalised_backward>(of, operands, m.mean, scale, std::move(back)));
  return {m, y};
}

}  // namespace tessera::detail

namespace tessera::nn {

TESSERA_INLINE at::Tensor forward(const call& c, const engine::normalisation& layer) {
  const at::Tensor& x = c.operand();
  using tessera::detail::local_groups;
  using shared_groups = std::shared_ptr<const local_groups>;
  const shared_groups& shared =
      c.bound.once<shared_groups>([&] { return std::make_shared<const local_groups>(c.bound, layer); });
  const local_groups& groups = *shared;
  const bool running = layer.tracked && !c.training;
  if (layer.groups.by_channel && !layer.groups.channels.is_set() && !running && groups.count() == 1)
    throw error(refusal{code::one_value_a_channel}, c.bound.team->label());
  std::vector<at::Tensor> operands{x};
  for (std::size_t i = 0; i < c.state.parameters.size(); ++i) operands.push_back(c.weight(i));
  const auto given = [&](std::size_t i) { return i < operands.size() ? std::optional(operands[i]) : std::nullopt; };
  const auto kept = [&](std::size_t i) { return layer.tracked ? std::optional(c.buffer(i).value()) : std::nullopt; };
  double share = layer.momentum;
  if (layer.tracked && c.training) {
    if (!layer.groups.by_sample || layer.cumulative) c.buffer(2).set(c.buffer(2).value() + 1);
    if (layer.cumulative) share = 1 / c.buffer(2).value().item<double>();
  }
  const double eps = layer.eps == engine::eps_of_element ? tessera::detail::epsilon_of(x.scalar_type()) : layer.eps;
  if (running || (!groups.cut() && !layer.averages())) {
    const auto alone = [&] {
      if (!layer.centred) return at::rms_norm(x, groups.sizes(x), given(1), eps);
      if (!layer.groups.by_channel) return at::layer_norm(x, groups.sizes(x), given(1), given(2), eps);
      if (layer.groups.by_sample && !running)
        return at::group_norm(x, groups.of_channels(x), given(1), given(2), eps, false);
      // Where extents of 1 let strides pass as channels-last ones, LibTorch's backward takes those of the gradient for
      // them too.
      return at::batch_norm(x.contiguous(), given(1), given(2), kept(0), kept(1), !running, share, eps, false);
    };
    return c.bound.depends_on_all(x.numel() > 0 ? alone() : tessera::detail::empty_result(c.bound.outputs, operands),
                                  operands);
  }
  std::vector<at::Tensor> given_or_not = operands;
  given_or_not.resize(3);
  const auto [m, y] = tessera::detail::normalised({shared, eps, layer.centred, c.bound.some_are_empty}, given_or_not);
  if (layer.tracked && c.training && (groups.count() > 0 || (layer.averages() && groups.samples() == 0))) {
    const at::NoGradGuard no_record;
    const auto blend = [&](std::size_t i, const at::Tensor& now) {
      const at::Tensor before = c.buffer(i).value().to(at::kDouble);
      c.buffer(i).set((1 - share) * before + share * now.reshape(before.sizes()));
    };
    const tessera::detail::moments now = layer.averages() ? groups.averaged(m) : m;
    blend(0, now.mean);
    blend(1, now.squares * (groups.count() / (groups.count() - 1)));
  }
  return c.bound.depends_on_all(y, operands);
}

}  // namespace tessera::nn
