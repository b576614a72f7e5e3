#pragma once

#include <tessera/comm/base/header_or_compiled.hpp>
#include <tessera/tensor/stream/stream_function.hpp>

#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/variable.h>
#include <tessera/tensor/box/aten.hpp>

namespace tessera::detail {

/// The gradients of the first `count` operands, where the others are those of the results; in a graph of their own
/// where gradients are recorded.
inline std::vector<at::Tensor> gradients_of_step(const engine::recorded_function::computed& f,
                                                 const std::vector<at::Tensor>& given, std::size_t count,
                                                 const engine::interval& where) {
  const bool again = c10::GradMode::is_enabled();
  const c10::AutoGradMode record(true);
  std::vector<at::Tensor> operands;
  torch::autograd::edge_list to;
  for (std::size_t i = 0; i < count; ++i) {
    at::Tensor x = again && given[i].requires_grad() ? at::alias(given[i]) : given[i].detach();
    if (torch::autograd::isDifferentiableType(x.scalar_type()) && !x.requires_grad()) x.requires_grad_();
    if (x.requires_grad()) to.push_back(torch::autograd::impl::gradient_edge(x));
    operands.push_back(std::move(x));
  }
  const std::vector<at::Tensor> y = f(operands, where);
  torch::autograd::edge_list roots;
  std::vector<at::Tensor> seeds;
  for (std::size_t i = 0; i < y.size(); ++i)
    if (y[i].requires_grad()) {
      roots.push_back(torch::autograd::impl::gradient_edge(y[i]));
      seeds.push_back(given[count + i].to(y[i].scalar_type()));
    }
  std::vector<at::Tensor> all(count);
  if (!roots.empty()) {
    const auto found = torch::autograd::Engine::get_default_engine().execute(roots, seeds, again, again, false, to);
    auto next = found.begin();
    for (std::size_t i = 0; i < count; ++i)
      if (operands[i].requires_grad()) all[i] = *next++;
  }
  for (std::size_t i = 0; i < count; ++i)
    if (!all[i].defined()) all[i] = at::zeros_like(given[i]);
  return all;
}

}  // namespace tessera::detail

namespace tessera::engine {

TESSERA_INLINE void recorded_function::add(const std::vector<at::Tensor>& pieces, const interval& where,
                                           const std::vector<stream_result>& results) const {
  const std::vector<at::Tensor> y = f_(pieces, where);
  for (std::size_t i = 0; i < results.size(); ++i)
    if (results[i].into.defined()) results[i].take(y[i]);
}
TESSERA_INLINE std::shared_ptr<const stream_function> recorded_function::gradient() const {
  return std::make_shared<recorded_function>(
      [f = f_, n = operands_](const std::vector<at::Tensor>& x, const interval& where) {
        return tessera::detail::gradients_of_step(f, x, n, where);
      },
      operands_ + results_, operands_);
}

}  // namespace tessera::engine
