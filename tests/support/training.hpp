#pragma once
// A small network that is trained over a grid of workers and serially beside it.

#include <torch/nn/utils/clip_grad.h>
#include <torch/optim/sgd.h>

#include "tests/support/tensors.hpp"

namespace tessera::testing {

using namespace engine;

struct trained_batch : dyn {};

/// A small classifier on R x C workers, its samples cut over rows and its features over columns.
template <int R, int C>
struct classifier {
  struct rows : axis<R> {};
  struct columns : axis<C> {};
  using grid = mesh<rows, columns>;
  using input = tensor<partition<grid, blocks<rows>, blocks<columns>>, shape<trained_batch, dim<7>>, double>;
  using labels = tensor<partition<grid, blocks<rows>, invariant<columns>>, shape<trained_batch>, std::int64_t>;
  using net = nn::sequential<input, nn::linear<9>, nn::relu, nn::linear<5>>;
};

/// The largest difference of losses, gradient norms and final weights from a serial run, over a few steps.
template <int R, int C>
double difference(const std::shared_ptr<transport>& carrier) {
  using K = classifier<R, C>;
  const team<typename K::grid> workers(carrier);
  const c10::Device device = device_of(workers);
  typename K::net net{workers, seed{3}};
  const at::Tensor images = global_of({11, 7}, numbers{4});
  const at::Tensor labels = at::arange(11, at::kLong).mul(3).remainder(5);
  nn::state_dict serial = nn::state_of(net);
  std::vector<at::Tensor> w;
  for (const char* key : {"0.weight", "0.bias", "2.weight", "2.bias"})
    w.push_back(serial.at(key).cpu().requires_grad_(true));

  const torch::optim::SGDOptions options = torch::optim::SGDOptions(0.2).momentum(0.9);
  torch::optim::SGD ours(net.parameters(), options);
  torch::optim::SGD theirs(w, options);
  const auto x = distribute<typename K::input>(workers, images.to(device));
  const auto y = distribute<typename K::labels>(workers, labels.to(device));
  double worst = 0;
  for (const initial_value& v :
       {init::normal(), init::truncated_normal(), init::orthogonal(), init::sparse(0.5), init::xavier_uniform()}) {
    const auto everywhere =
        initial<tensor<partition<typename K::grid, whole, whole>, shape_of<11, 7>, double>>(workers, v, seed{1}, "w");
    const auto parts = initial<typename K::input>(workers, v, seed{1}, "w", bind<trained_batch>(11));
    if (!same_bits(full_tensor(parts).cpu(), everywhere.local().cpu())) return 1;  // initial values are the same bits
  }
  for (int step = 0; step < 4; ++step) {
    ours.zero_grad();
    theirs.zero_grad();
    const auto loss = nn::cross_entropy(net(x), y);
    const at::Tensor expected =
        at::cross_entropy_loss(at::linear(at::relu(at::linear(images, w[0], w[1])), w[2], w[3]), labels);
    loss.backward();
    expected.backward();
    worst = std::max(worst, std::abs(item(loss) - expected.item<double>()));
    const double norm = torch::nn::utils::clip_grad_norm_(w, 0.1);
    worst = std::max(worst, std::abs(nn::clip_grad_norm(net, 0.1) / norm - 1));
    ours.step();
    theirs.step();
  }
  const nn::state_dict final_weights = nn::state_of(net);
  int i = 0;
  for (const char* key : {"0.weight", "0.bias", "2.weight", "2.bias"})
    worst =
        std::max(worst, (final_weights.at(key).cpu() - w[static_cast<std::size_t>(i++)]).abs().max().item<double>());
  return worst;
}

}  // namespace tessera::testing
