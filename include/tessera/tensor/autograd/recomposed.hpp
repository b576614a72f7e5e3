#pragma once

#include <tessera/tensor/change/change.hpp>

#include <torch/csrc/autograd/engine.h>

#include <algorithm>
#include <functional>
#include <utility>
#include <vector>

namespace tessera::detail {

/// A function of tensors as LibTorch's differentiable ones compose it; operands that are undefined are none.
using composition_of_tensors = std::function<at::Tensor(const std::vector<at::Tensor>&)>;

/// The gradients of the operands of y = f(operands) for a gradient of y, in a graph of their own; undefined of what has
/// none.
inline torch::autograd::variable_list gradients_of(const composition_of_tensors& f, std::vector<at::Tensor> operands,
                                                   const at::Tensor& gradient) {
  torch::autograd::edge_list to;
  for (at::Tensor& x : operands) {
    if (!x.defined() || !x.requires_grad()) continue;
    x = at::alias(x);
    to.push_back(torch::autograd::impl::gradient_edge(x));
  }
  const at::Tensor y = f(operands);
  const auto found = torch::autograd::Engine::get_default_engine().execute({torch::autograd::impl::gradient_edge(y)},
                                                                           {gradient}, true, true, false, to);
  torch::autograd::variable_list all(operands.size());
  auto next = found.begin();
  for (std::size_t i = 0; i < all.size(); ++i)
    if (operands[i].defined() && operands[i].requires_grad()) all[i] = *next++;
  return all;
}

/// The gradient of y passes to the kernel that made it; one that is differentiated itself goes past it, to the
/// operands, by f.
class recomposed_backward final : public torch::autograd::Node {
 public:
  recomposed_backward(const at::Tensor& y, const std::vector<at::Tensor>& operands, composition_of_tensors f)
      : f_(std::move(f)) {
    add_next_edge(torch::autograd::impl::gradient_edge(y));
    for (const at::Tensor& x : operands) {
      saved_.emplace_back(x, false);
      add_next_edge(torch::autograd::impl::gradient_edge(x));
    }
  }

  torch::autograd::variable_list apply(torch::autograd::variable_list&& gradients) override {
    torch::autograd::variable_list all(1 + saved_.size());
    if (!c10::GradMode::is_enabled() || !gradients[0].defined()) {
      all[0] = gradients[0];
      return all;
    }
    std::vector<at::Tensor> operands;
    for (const torch::autograd::SavedVariable& one : saved_) operands.push_back(one.unpack());
    auto found = gradients_of(f_, std::move(operands), gradients[0]);
    std::move(found.begin(), found.end(), all.begin() + 1);
    return all;
  }
  void release_variables() override {
    for (torch::autograd::SavedVariable& x : saved_) x.reset_data();
  }
  std::string name() const override { return "tessera::recomposed"; }

 private:
  composition_of_tensors f_;
  std::vector<torch::autograd::SavedVariable> saved_;
};

/// Gives y, the result of a LibTorch kernel whose backward cannot be differentiated, derivatives of higher order. They
/// are those of f, the same function composed of differentiable ones.
inline at::Tensor recomposed(const at::Tensor& y, const std::vector<at::Tensor>& operands, composition_of_tensors f) {
  if (!c10::GradMode::is_enabled() || !y.requires_grad()) return y;
  const at::Tensor result = y.is_view() ? at::alias(y) : y.variable_data();
  if (y.is_view()) refuse_writing(result);
  const auto node = make_node<recomposed_backward>(y, operands, std::move(f));
  torch::autograd::impl::set_gradient_edge(result, {node, node->add_input_metadata(result)});
  return result;
}

}  // namespace tessera::detail
