// backward() of a module of 400 small parameters that is data parallel, over that of the same module alone, in turns:
// the ratio of times, and the microseconds that a parameter costs, of the wall and of the worker's processor. To
// be 1.15 and 2 µs at most.
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>
#include <tessera/nn/gradient/data_parallel.hpp>
#include <tessera/tensor/launch.hpp>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <vector>

namespace ts = tessera;

namespace {

constexpr int layers = 200, turns = 300, warm = 50;

torch::nn::Sequential made() {
  torch::nn::Sequential net;
  for (int i = 0; i < layers; ++i) net->push_back(torch::nn::Linear(16, 16));
  return net;
}

/// What a backward took, in microseconds.
struct took {
  double wall = 0, processor = 0;  ///< of this worker's thread, in which all of backward runs
};

double thread_time() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return 1e6 * static_cast<double>(now.tv_sec) + 1e-3 * static_cast<double>(now.tv_nsec);
}

took backward(const ts::team_handle& team, torch::nn::Sequential& net, const at::Tensor& x) {
  net->zero_grad();
  const at::Tensor loss = net->forward(x).sum();
  team->collect(0, "all begin together");
  const double processor = thread_time();
  const auto began = std::chrono::steady_clock::now();
  loss.backward();
  return {std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - began).count(),
          thread_time() - processor};
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
    std::vector<double> ratios, more, of_processor, more_of_processor;
    for (int i = 0; i < turns; ++i) {
      const took one = backward(team.state(), alone, x), other = backward(team.state(), net, x);
      if (i < warm) continue;
      ratios.push_back(other.wall / one.wall);
      more.push_back((other.wall - one.wall) / (2 * layers));
      of_processor.push_back(other.processor / one.processor);
      more_of_processor.push_back((other.processor - one.processor) / (2 * layers));
    }
    if (team.first())
      fmt::print(
          "{{\"benchmark\": \"data_parallel\", \"workers\": {}, \"ratio\": {:.3f}, \"us_a_parameter\": {:.2f}, "
          "\"processor_ratio\": {:.3f}, \"processor_us_a_parameter\": {:.2f}}}\n",
          Workers, median(ratios), median(more), median(of_processor), median(more_of_processor));
  });
}

}  // namespace

int main(int argc, char** argv) { return measure<1>(argc, argv) + measure<2>(argc, argv); }
