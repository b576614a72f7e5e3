// backward() of a module of 400 small parameters that is data parallel, over that of the same module alone, in turns:
// the ratio of times, and the microseconds that a parameter costs. To be 1.15 and 2 µs at most.
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>
#include <tessera/nn/gradient/data_parallel.hpp>
#include <tessera/tensor/launch.hpp>

#include <algorithm>
#include <chrono>
#include <vector>

namespace ts = tessera;

namespace {

constexpr int layers = 200, turns = 300, warm = 50;

torch::nn::Sequential made() {
  torch::nn::Sequential net;
  for (int i = 0; i < layers; ++i) net->push_back(torch::nn::Linear(16, 16));
  return net;
}

/// Microseconds of a backward.
double backward(torch::nn::Sequential& net, const at::Tensor& x) {
  net->zero_grad();
  const at::Tensor loss = net->forward(x).sum();
  const auto began = std::chrono::steady_clock::now();
  loss.backward();
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - began).count();
}

double median(std::vector<double> v) {
  std::sort(v.begin(), v.end());
  return v[v.size() / 2];
}

template <int Workers>
struct data : ts::axis<Workers> {};

template <int Workers>
int measure(int argc, char** argv) {
  using workers = ts::mesh<data<Workers>>;
  return ts::launch<workers>(argc, argv, [](ts::team<workers>& team) {
    torch::nn::Sequential alone = made(), net = made();
    const ts::nn::data_parallel parallel(team, *net);
    const at::Tensor x = at::ones({16, 16});
    std::vector<double> ratios, more;
    for (int i = 0; i < turns; ++i) {
      const double one = backward(alone, x), other = backward(net, x);
      if (i < warm) continue;
      ratios.push_back(other / one);
      more.push_back((other - one) / (2 * layers));
    }
    if (team.first())
      fmt::print(
          "{{\"benchmark\": \"data_parallel\", \"workers\": {}, \"ratio\": {:.3f}, \"us_a_parameter\": {:.2f}}}\n",
          Workers, median(ratios), median(more));
  });
}

}  // namespace

int main(int argc, char** argv) { return measure<1>(argc, argv) + measure<2>(argc, argv); }
