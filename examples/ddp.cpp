// An ordinary program of LibTorch, data parallel by five lines: those that end in "// +". It trains beside the program
// without them, and fails unless both get the same parameters.
#include <torch/nn/functional/loss.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/adamw.h>
#include <tessera/nn/gradient/data_parallel.hpp>
#include <tessera/tessera.hpp>

namespace ts = tessera;

struct sets {
  at::Tensor x, y;
};
sets generated(std::int64_t n) {
  const at::Tensor x = at::sin(at::arange(n * 6, at::kDouble).square()).view({n, 6});
  return {x, (x.narrow(1, 0, 3) + x.narrow(1, 3, 3)).argmax(1)};
}

torch::nn::Sequential made() {
  torch::nn::Sequential net(torch::nn::Linear(6, 32), torch::nn::GELU(), torch::nn::Linear(32, 3));
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

// [accumulate]
/// A step of the mean over batches that come one after the other.
void step_of(ts::nn::data_parallel& parallel, torch::nn::Sequential& net, torch::optim::AdamW& optimizer,
             const std::vector<sets>& batches) {
  const std::size_t n = batches.size();
  optimizer.zero_grad();
  for (std::size_t i = 0; i < n; ++i) {
    const auto window = parallel.window(i + 1 == n);  // the last one brings the sums
    (torch::cross_entropy_loss(net->forward(batches[i].x), batches[i].y) / static_cast<double>(n)).backward();
  }
  optimizer.step();
}
// [end]

// [program]
std::vector<at::Tensor> trained(const ts::team_handle& team, const sets& all) {
  torch::nn::Sequential net = made();
  ts::nn::data_parallel parallel(team, *net);  // +
  torch::optim::AdamW optimizer(net->parameters(), torch::optim::AdamWOptions(1e-2));

  const auto mine = static_cast<std::size_t>(team->rank());
  const at::Tensor x = all.x.tensor_split(team->size())[mine];  // of this worker: as many as others have, or one less
  const at::Tensor y = all.y.tensor_split(team->size())[mine];
  for (int step = 0; step < 20; ++step) {
    optimizer.zero_grad();
    const auto window = parallel.window(true, x.size(0));  // +: workers with more samples count more
    torch::cross_entropy_loss(net->forward(x), y).backward();
    optimizer.step();
  }
  return net->parameters();
}
// [end]

// [divided]
/// The same, and each worker keeps its share of the optimizer's state alone.
std::vector<at::Tensor> divided(const ts::team_handle& team, const sets& all) {
  torch::nn::Sequential net = made();
  ts::nn::data_parallel parallel(team, *net, {.stage = 1});                                // + the option
  torch::optim::AdamW optimizer(parallel.parameters(), torch::optim::AdamWOptions(1e-2));  // + not the net's

  const auto mine = static_cast<std::size_t>(team->rank());
  const at::Tensor x = all.x.tensor_split(team->size())[mine];
  const at::Tensor y = all.y.tensor_split(team->size())[mine];
  for (int step = 0; step < 20; ++step) {
    optimizer.zero_grad();
    const auto window = parallel.window(true, x.size(0));
    torch::cross_entropy_loss(net->forward(x), y).backward();
    optimizer.step();   // of this worker's share
    parallel.gather();  // + brings all shares to all workers
  }
  return net->parameters();
}
// [end]

void compare(const std::vector<at::Tensor>& ours, const std::vector<at::Tensor>& theirs) {
  for (std::size_t i = 0; i < ours.size(); ++i)
    if (!at::allclose(ours[i], theirs[i], 1e-10, 1e-12)) throw std::runtime_error("one process has other parameters");
}

/// A step of four batches on each worker, beside one of all batches.
void accumulate(const ts::team_handle& team) {
  const std::int64_t count = 4 * team->size();
  const sets all = generated(10 * count);
  const auto batches = [&](std::int64_t of, std::int64_t so_many) {
    std::vector<sets> parts;
    for (std::int64_t i = of; i < of + so_many; ++i)
      parts.push_back({all.x.narrow(0, 10 * i, 10), all.y.narrow(0, 10 * i, 10)});
    return parts;
  };
  torch::nn::Sequential net = made(), alone = made();
  ts::nn::data_parallel parallel(team, *net);
  torch::optim::AdamW optimizer(net->parameters()), beside(alone->parameters());
  step_of(parallel, net, optimizer, batches(4 * team->rank(), 4));
  for (const sets& one : batches(0, count))
    (torch::cross_entropy_loss(alone->forward(one.x), one.y) / static_cast<double>(count)).backward();
  beside.step();
  compare(net->parameters(), alone->parameters());
}

// [launch]
int main(int argc, char** argv) {
  return ts::launch(argc, argv, {.threads = 4}, "data", [](const ts::team_handle& team) {  // +
    const sets all = generated(101);
    const std::vector<at::Tensor> wanted = serial(all);
    compare(trained(team, all), wanted);
    compare(divided(team, all), wanted);
    accumulate(team);
    if (team->rank() == 0) fmt::print("as many workers as there are, {}, train as one\n", team->size());
  });
}
// [end]
