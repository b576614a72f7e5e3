#pragma once

#include <tessera/tensor/autograd/graph_dependence.hpp>

#include <algorithm>

namespace tessera::detail {

TESSERA_INLINE tied_backward::tied_backward(const at::Tensor& y, const std::vector<at::Tensor>& operands)
    : empty_(y.numel() == 0) {
  add_next_edge(torch::autograd::impl::gradient_edge(y));
  for (const at::Tensor& x : operands) {
    operands_.push_back({x.sizes().vec(), x.options()});
    add_next_edge(torch::autograd::impl::gradient_edge(x));
  }
}

TESSERA_INLINE torch::autograd::variable_list tied_backward::apply(torch::autograd::variable_list&& gradients) {
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

TESSERA_INLINE at::Tensor depends_on_all(const at::Tensor& y, const std::vector<at::Tensor>& operands) {
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
