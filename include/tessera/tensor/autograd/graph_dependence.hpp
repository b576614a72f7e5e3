#pragma once

#include <tessera/tensor/change/change.hpp>

#include <algorithm>
#include <memory>
#include <vector>

namespace tessera::detail {

inline at::Tensor depends_on_all(const at::Tensor& y, const std::vector<at::Tensor>& operands);

/// What is known of a tensor when its elements are not kept.
struct outline {
  std::vector<std::int64_t> sizes;
  at::TensorOptions options;

  at::Tensor zeros() const { return at::zeros({}, options).expand(sizes).variable_data(); }

  /// Zeros that stand for the tensor in a graph.
  at::Tensor at_edge(const torch::autograd::Edge& edge) const {
    at::Tensor t = zeros();
    if (edge.is_valid()) torch::autograd::impl::set_gradient_edge(t, edge);
    return t;
  }
};

/// The gradient of y passes; those of the operands are zeros that depend on all operands and on the cotangent. A
/// backward that is not differentiated needs them of an empty y alone, whose other gradients may be none.
class tied_backward final : public torch::autograd::Node {
 public:
  tied_backward(const at::Tensor& y, const std::vector<at::Tensor>& operands) : empty_(y.numel() == 0) {
    add_next_edge(torch::autograd::impl::gradient_edge(y));
    for (const at::Tensor& x : operands) {
      operands_.push_back({x.sizes().vec(), x.options()});
      add_next_edge(torch::autograd::impl::gradient_edge(x));
    }
  }

  torch::autograd::variable_list apply(torch::autograd::variable_list&& gradients) override {
    torch::autograd::variable_list all{gradients[0]};
    all.resize(1 + operands_.size());
    if (!c10::GradMode::is_enabled() && !empty_) return all;
    std::vector<at::Tensor> on;
    if (gradients[0].defined()) on.push_back(gradients[0]);
    for (std::size_t i = 0; i < operands_.size(); ++i) on.push_back(operands_[i].at_edge(next_edge(i + 1)));
    for (std::size_t i = 0; i < operands_.size(); ++i)
      if (task_should_compute_output(i + 1)) all[i + 1] = depends_on_all(operands_[i].zeros(), on);
    return all;
  }
  std::string name() const override { return "tessera::tied"; }

 private:
  std::vector<outline> operands_;
  bool empty_;
};

/// y as the result of a local operation that is not linear, so that a backward which is itself differentiated depends
/// on the same tensors on every worker: one whose box is empty would otherwise not meet the others at the exchanges
/// behind the operands.
inline at::Tensor depends_on_all(const at::Tensor& y, const std::vector<at::Tensor>& operands) {
  const bool tracked =
      std::any_of(operands.begin(), operands.end(), [](const at::Tensor& x) { return x.requires_grad(); });
  if (!tracked || !c10::GradMode::is_enabled()) return y;
  if (y._fw_grad(0).defined()) throw error(refusal{code::forward_mode});
  const bool shared =
      y.is_view() || std::any_of(operands.begin(), operands.end(), [&](const at::Tensor& x) { return y.is_same(x); });
  const at::Tensor result = shared ? at::alias(y) : y.variable_data();
  if (shared) refuse_writing(result);
  else torch::autograd::impl::set_version_counter(result, torch::autograd::impl::version_counter(y));
  const auto node = make_node<tied_backward>(y, operands);
  torch::autograd::impl::set_gradient_edge(result, {node, node->add_input_metadata(result)});
  return result;
}

}  // namespace tessera::detail
