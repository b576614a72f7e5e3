#pragma once

#include <tessera/tensor/change/change.hpp>

#include <memory>
#include <vector>

namespace tessera::detail {

/// The record of a tensor whose elements are not kept.
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
  tied_backward(const at::Tensor& y, const std::vector<at::Tensor>& operands);

  TESSERA_INLINE torch::autograd::variable_list apply(torch::autograd::variable_list&& gradients) override;
  std::string name() const override { return "tessera::graph_dependence"; }

 private:
  std::vector<outline> operands_;
  bool empty_;
};

/// Makes y depend on all operands in autograd's graph, as the result of a local operation that is not linear. A
/// differentiated backward then depends on the same tensors on every worker. Else a worker with an empty box would not
/// meet the others at the exchanges behind the operands.
at::Tensor depends_on_all(const at::Tensor& y, const std::vector<at::Tensor>& operands);

}  // namespace tessera::detail

#ifndef TESSERA_COMPILED
#include <tessera/tensor/autograd/graph_dependence_impl.hpp>
#endif
