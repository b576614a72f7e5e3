#pragma once

#include <tessera/tensor/change/change.hpp>

namespace tessera::detail {

/// The gradient of a tensor that passes as it is, but for a number: g ↦ c·g, itself differentiable.
class scaled_backward final : public torch::autograd::Node {
 public:
  explicit scaled_backward(const at::Scalar& by) : by_(by) {}

  torch::autograd::variable_list apply(torch::autograd::variable_list&& gradients) override {
    return {gradients[0].defined() ? gradients[0] * by_ : gradients[0]};
  }
  std::string name() const override { return "tessera::scale_gradient"; }

 private:
  at::Scalar by_;
};

/// A tensor like x, whose gradient is that of x, multiplied by a number.
inline at::Tensor with_gradient(const at::Tensor& value, const at::Tensor& x, const at::Scalar& by = 1) {
  if (!c10::GradMode::is_enabled() || !x.requires_grad()) return value;
  if (x._fw_grad(0).defined()) throw error(refusal{code::forward_mode});
  const at::Tensor y = at::alias(value);
  refuse_writing(y);
  const auto node = make_node<scaled_backward>(by);
  node->add_next_edge(torch::autograd::impl::gradient_edge(x));
  torch::autograd::impl::set_gradient_edge(y, {node, node->add_input_metadata(y)});
  return y;
}

/// x itself, whose gradient is multiplied by a number.
inline at::Tensor with_scaled_gradient(const at::Tensor& x, const at::Scalar& by) { return with_gradient(x, x, by); }

}  // namespace tessera::detail
