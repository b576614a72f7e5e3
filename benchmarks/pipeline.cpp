// 1F1B of two stages and eight micro-batches: the time of a step over that of one process by LibTorch alone, halved,
// and over (M + 1)/M, which is what the schedule waits: to be 1.1 at most. And a tiny network on one stage: the
// microseconds that a micro-batch takes longer in the pipeline than in the network alone, to be 20 at most. Both in
// turns.
#include <tessera/nn/network/program_parts.hpp>
#include <tessera/nn/pipeline/pipeline_parallel.hpp>
#include <tessera/tensor/launch.hpp>
#include <tessera/tessera.hpp>

#include <ATen/Parallel.h>

#include <algorithm>
#include <chrono>
#include <vector>

namespace ts = tessera;
namespace nn = ts::nn;

namespace {

template <int Stages>
struct stage : ts::axis<Stages> {};
template <int Stages>
using workers = ts::mesh<stage<Stages>>;
struct rows : ts::dyn {};
constexpr int micro_batches = 8;

template <int Stages, ts::index_t Width>
struct model {
  using input = ts::tensor<ts::partition<workers<Stages>, ts::whole, ts::whole, ts::on<stage<Stages>, 0>>,
                           ts::shape<rows, ts::dim<Width>>, float>;
  struct block {
    constexpr auto operator()(auto x) const { return tanh(x | nn::linear<Width>{}); }
  };
  struct last {
    constexpr auto operator()(auto x) const { return mean(square(x | block{})); }
  };
  using net = nn::network<nn::staged<nn::chain<block, block, block, last>, stage<Stages>>, input>;
};

double median(std::vector<double> v) {
  std::sort(v.begin(), v.end());
  return v[v.size() / 2];
}

template <class F>
double microseconds(const ts::team_handle& team, const F& f) {
  team->collect(0, "all begin together");
  const auto began = std::chrono::steady_clock::now();
  f();
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - began).count();
}

/// Medians of two things in turns.
template <class First, class Second>
std::pair<double, double> in_turns(const ts::team_handle& team, int rounds, const First& one, const Second& other) {
  std::vector<double> a, b;
  for (int i = 0; i < rounds; ++i) {
    const double first = microseconds(team, one), second = microseconds(team, other);
    if (i < rounds / 5) continue;
    a.push_back(first);
    b.push_back(second);
  }
  return {median(a), median(b)};
}

template <int Stages, ts::index_t Width>
struct trained {
  using of = model<Stages, Width>;
  typename of::net net;
  nn::pipeline_parallel pipeline;
  at::Tensor x;
  ts::tensor<ts::dyn> given;

  trained(ts::team<workers<Stages>>& team, ts::index_t each)
      : net(team, ts::seed{1}),
        pipeline(net, fmt::format("stage<{}>", Stages),
                 ts::pipeline::schedule{ts::pipeline::order::one_f_one_b, {Stages, micro_batches}}),
        x(at::ones({each * micro_batches, Width}) / Width),
        given(ts::distribute<typename of::input>(team, x).dynamic()) {}
};

/// A step on two stages over its share of one process.
int measure_step(int argc, char** argv) {
  return ts::launch<workers<2>>(argc, argv, [](ts::team<workers<2>>& team) {
    at::set_num_threads(1);
    constexpr ts::index_t each = 96, width = 768;
    trained<2, width> here(team, each);
    std::vector<at::Tensor> weights;
    for (int i = 0; i < 4; ++i)
      for (const std::vector<std::int64_t>& sizes : {std::vector<std::int64_t>{width, width}, {width}})
        weights.push_back((at::rand(sizes) / width).requires_grad_());
    const auto serial = [&] {
      if (!team.first()) return;  // by itself
      for (int m = 0; m < micro_batches; ++m) {
        at::Tensor h = here.x.narrow(0, m * each, each);
        for (std::size_t k = 0; k < weights.size(); k += 2) h = at::tanh(at::linear(h, weights[k], weights[k + 1]));
        (at::mean(at::square(h)) / micro_batches).backward();
      }
    };
    const auto [piped, alone] =
        in_turns(team.state(), 25, [&] { here.pipeline.forward_backward({here.given}); }, serial);
    const double wanted = alone / 2 * (micro_batches + 1) / micro_batches;
    if (team.first())
      fmt::print(
          "{{\"benchmark\": \"pipeline\", \"stages\": 2, \"micro_batches\": {}, \"step_ms\": {:.2f}, "
          "\"serial_ms\": {:.2f}, \"over_schedule\": {:.3f}}}\n",
          micro_batches, piped / 1000, alone / 1000, piped / wanted);
  });
}

/// What the executor takes for a micro-batch of a stage, beside the network by itself.
int measure_executor(int argc, char** argv) {
  return ts::launch<workers<1>>(argc, argv, [](ts::team<workers<1>>& team) {
    at::set_num_threads(1);
    constexpr ts::index_t each = 2;
    trained<1, 4> here(team, each);
    const auto part = ts::distribute<typename model<1, 4>::input>(team, here.x.narrow(0, 0, each));
    const auto [piped, alone] = in_turns(
        team.state(), 500, [&] { here.pipeline.forward_backward({here.given}); },
        [&] {
          for (int m = 0; m < micro_batches; ++m) here.net(part).backward();
        });
    fmt::print(
        "{{\"benchmark\": \"pipeline\", \"stages\": 1, \"micro_batches\": {}, \"us_a_micro_batch\": {:.1f}, "
        "\"us_alone\": {:.1f}, \"executor_us_a_micro_batch_and_stage\": {:.1f}}}\n",
        micro_batches, piped / micro_batches, alone / micro_batches, (piped - alone) / micro_batches);
  });
}

}  // namespace

int main(int argc, char** argv) { return measure_step(argc, argv) + measure_executor(argc, argv); }
