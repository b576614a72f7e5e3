#pragma once
// A small module of LibTorch that any number of workers trains, each with samples of its own.

#include <torch/nn/functional/loss.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>

#include "tests/support/tensors.hpp"

namespace tessera::testing {

inline mesh_value row_of(int workers, int rows = 1) {
  mesh_value m;
  if (rows > 1) m.axes.push({text("node"), rows});
  m.axes.push({text("data"), workers});
  return row_major(m);
}

template <class F>
auto on_mesh(const mesh_value& m, F&& f) {
  return on_workers(
      m.size(), [&](const std::shared_ptr<transport>& carrier) { return f(std::make_shared<team_state>(carrier, m)); });
}

/// Of 28 + 7 + 21 + 3 + 6 + 2 = 67 elements.
inline torch::nn::Sequential model(at::ScalarType type) {
  torch::nn::Sequential net(torch::nn::Linear(4, 7), torch::nn::Tanh(), torch::nn::Linear(7, 3), torch::nn::Tanh(),
                            torch::nn::Linear(3, 2));
  net->to(at::kDouble);
  const at::NoGradGuard no_graph;
  double begin = 0;
  for (at::Tensor& w : net->parameters()) {
    w.copy_((at::arange(w.numel(), at::kDouble) + begin).sin().view(w.sizes()));
    begin += 10;
  }
  net->to(type);
  return net;
}

/// Of a worker's own samples.
inline at::Tensor loss_of(torch::nn::Sequential& net, at::ScalarType type, int rank, int pass) {
  const at::Tensor x = (at::arange(12, at::kDouble) + 5 * rank + 17 * pass).sin().view({3, 4}).to(type);
  const at::Tensor y = (at::arange(6, at::kDouble) + 3 * rank + 11 * pass).cos().view({3, 2}).to(type);
  return torch::mse_loss(net->forward(x), y);
}
inline void backward(torch::nn::Sequential& net, at::ScalarType type, int rank, int pass) {
  loss_of(net, type, rank, pass).backward();
}

/// To the bit.
inline bool equal(const std::vector<at::Tensor>& a, const std::vector<at::Tensor>& b) {
  return a.size() == b.size() &&
         std::equal(a.begin(), a.end(), b.begin(), [](const at::Tensor& x, const at::Tensor& y) { return x.equal(y); });
}

}  // namespace tessera::testing
