// ZeRO for an ordinary program of LibTorch: the state of the optimizer is divided over workers. It trains beside the
// program without that, and fails unless both get the same parameters.
#include <torch/nn/functional/loss.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/utils/clip_grad.h>
#include <torch/optim/adamw.h>
#include <tessera/nn/gradient/bundle_shards.hpp>
#include <tessera/nn/training/average.hpp>
#include <tessera/nn/training/loss_scaler.hpp>
#include <tessera/tessera.hpp>

#include <cmath>

namespace ts = tessera;

struct sets {
  at::Tensor x, y;
};
sets generated(std::int64_t n) {
  const at::Tensor x = at::sin(at::arange(n * 6, at::kDouble).square()).view({n, 6});
  return {x, (x.narrow(1, 0, 3) + x.narrow(1, 3, 3)).argmax(1)};
}

torch::nn::Sequential made() {
  torch::nn::Sequential net(torch::nn::Linear(6, 33), torch::nn::GELU(), torch::nn::Linear(33, 3));
  net->to(at::kDouble);
  const at::NoGradGuard no_graph;
  for (at::Tensor& w : net->parameters()) w.copy_(at::arange(w.numel(), at::kDouble).sin().view(w.sizes()) / 4);
  return net;
}

std::vector<at::Tensor> serial(const sets& all) {
  torch::nn::Sequential net = made();
  torch::optim::AdamW optimizer(net->parameters(), torch::optim::AdamWOptions(1e-2));
  for (int step = 0; step < 20; ++step) {
    optimizer.zero_grad();
    torch::cross_entropy_loss(net->forward(all.x), all.y).backward();
    optimizer.step();
  }
  return net->parameters();
}

// [program]
struct data : ts::axis<4> {};
using workers = ts::mesh<data>;

std::vector<at::Tensor> trained(const ts::team<workers>& team, const sets& all, int stage) {
  torch::nn::Sequential net = made();
  ts::nn::bundle_shards shards(team, *net, {.stage = stage});                            // +
  torch::optim::AdamW optimizer(shards.parameters(), torch::optim::AdamWOptions(1e-2));  // + not the net's

  const auto mine = static_cast<std::size_t>(team.rank());
  const at::Tensor x = all.x.tensor_split(4)[mine], y = all.y.tensor_split(4)[mine];
  for (int step = 0; step < 20; ++step) {
    optimizer.zero_grad();
    {
      const auto window = shards.window(true, x.size(0));  // + workers with more samples count more
      torch::cross_entropy_loss(net->forward(x), y).backward();
    }
    optimizer.step();  // of this worker's quarter
    shards.gather();   // +
  }
  return net->parameters();
}
// [end]

// [judged]
/// The same with a loss scale, clipping and an average of what is stepped; the loss of the averages.
double judged(const ts::team<workers>& team, const sets& all) {
  torch::nn::Sequential net = made();
  ts::nn::bundle_shards shards(team, *net, {.stage = 2});
  torch::optim::AdamW optimizer(shards.parameters(), torch::optim::AdamWOptions(1e-2));
  ts::nn::loss_scaler scaler({.scale = 1024});
  ts::nn::average average(shards, {.decay = 0.9});

  const auto mine = static_cast<std::size_t>(team.rank());
  const at::Tensor x = all.x.tensor_split(4)[mine], y = all.y.tensor_split(4)[mine];
  for (int step = 0; step < 20; ++step) {
    optimizer.zero_grad();
    {
      const auto window = shards.window(true, x.size(0));
      scaler.scaled(torch::cross_entropy_loss(net->forward(x), y)).backward();
    }
    const ts::nn::judgement judged = scaler.step(optimizer, shards, {.most = 0.5});  // one exchange of a number
    shards.gather();
    if (judged.finite) average.update();  // of this worker's quarter; moves nothing
  }
  const auto in = average.swapped_in();  // the module has the averages until the end of the scope
  return torch::cross_entropy_loss(net->forward(all.x), all.y).item<double>();
}
// [end]

/// What one process makes of it.
double judged_alone(const sets& all) {
  torch::nn::Sequential net = made();
  torch::optim::AdamW optimizer(net->parameters(), torch::optim::AdamWOptions(1e-2));
  std::vector<at::Tensor> averages;
  for (const at::Tensor& w : net->parameters()) averages.push_back(w.detach().clone());
  for (int step = 0; step < 20; ++step) {
    optimizer.zero_grad();
    torch::cross_entropy_loss(net->forward(all.x), all.y).backward();
    torch::nn::utils::clip_grad_norm_(net->parameters(), 0.5);
    optimizer.step();
    const at::NoGradGuard no_graph;
    for (std::size_t i = 0; i < averages.size(); ++i) averages[i].mul_(0.9).add_(net->parameters()[i], 0.1);
  }
  const at::NoGradGuard no_graph;
  for (std::size_t i = 0; i < averages.size(); ++i) net->parameters()[i].copy_(averages[i]);
  return torch::cross_entropy_loss(net->forward(all.x), all.y).item<double>();
}

int main(int argc, char** argv) {
  return ts::launch<workers>(argc, argv, [](ts::team<workers>& team) {
    const sets all = generated(101);
    const std::vector<at::Tensor> wanted = serial(all);
    for (const int stage : {1, 2}) {
      const std::vector<at::Tensor> found = trained(team, all, stage);
      for (std::size_t i = 0; i < found.size(); ++i)
        if (!at::allclose(found[i], wanted[i], 1e-10, 1e-12))
          throw std::runtime_error("one process has other parameters");
    }
    if (std::abs(judged(team, all) - judged_alone(all)) > 1e-10)
      throw std::runtime_error("one process has another loss of averages");
    if (team.first()) fmt::print("four workers step a quarter each\n");
  });
}
