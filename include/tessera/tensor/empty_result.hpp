#pragma once

#include <tessera/tensor/change.hpp>

#include <torch/csrc/autograd/saved_variable.h>

namespace tessera::detail {

inline at::Tensor hung(const at::Tensor& y, const std::vector<at::Tensor>& operands);

/// The gradient of y passes; those of the operands are zeros that hang on all of them and on the cotangent. A backward that is
/// not differentiated needs them of an empty y alone, whose other gradients may be none.
class hung_backward final : public torch::autograd::Node {
 public:
  hung_backward(const at::Tensor& y, const std::vector<at::Tensor>& operands) : empty_(y.numel() == 0) {
    for (const at::Tensor& x : operands) operands_.emplace_back(x, false);
  }

  torch::autograd::variable_list apply(torch::autograd::variable_list&& gradients) override {
    torch::autograd::variable_list all{gradients[0]};
    all.resize(1 + operands_.size());
    if (!c10::GradMode::is_enabled() && !empty_) return all;
    std::vector<at::Tensor> hooks;
    if (gradients[0].defined()) hooks.push_back(gradients[0]);
    for (const auto& x : operands_) hooks.push_back(x.unpack());
    for (std::size_t i = 0; i < operands_.size(); ++i) {
      const at::Tensor x = operands_[i].unpack();
      if (task_should_compute_output(i + 1)) all[i + 1] = hung(at::zeros({}, x.options()).expand(x.sizes()), hooks);
    }
    return all;
  }
  void release_variables() override {
    for (auto& x : operands_) x.reset_data();
  }
  std::string name() const override { return "tessera::hung"; }

 private:
  std::vector<torch::autograd::SavedVariable> operands_;
  bool empty_;
};

/// y as the result of a local operation that is not linear, so that a backward which is itself differentiated depends on the same
/// tensors on every worker: one whose box is empty would otherwise not meet the others at the exchanges behind the operands.
inline at::Tensor hung(const at::Tensor& y, const std::vector<at::Tensor>& operands) {
  const bool tracked = std::any_of(operands.begin(), operands.end(), [](const at::Tensor& x) { return x.requires_grad(); });
  if (!tracked || !c10::GradMode::is_enabled()) return y;
  const auto node = std::make_shared<hung_backward>(y, operands);
  torch::autograd::edge_list edges{torch::autograd::impl::gradient_edge(y)};
  for (const at::Tensor& x : operands) edges.push_back(torch::autograd::impl::gradient_edge(x));
  node->set_next_edges(std::move(edges));
  at::Tensor result = y.variable_data();
  torch::autograd::impl::set_version_counter(result, torch::autograd::impl::version_counter(y));
  torch::autograd::set_history(result, node);
  return result;
}

/// Zeros of a box that hang on their operands: a worker without elements skips the local operation, never the backward. Their
/// element is the first operand's.
inline at::Tensor empty_result(const holding& raw, const at::TensorList& operands) {
  at::Tensor none = at::zeros({}, operands[0].options());
  for (const at::Tensor& x : operands)
    if (x.requires_grad()) none = none + x.sum() * 0;
  return none.to(operands[0].scalar_type()).expand(sizes_of(raw)).clone();
}

}  // namespace tessera::detail
