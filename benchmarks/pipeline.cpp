// A step of a pipeline over its parts on one process, in turns. 1F1B of two stages and eight micro-batches: the time of
// a step over that of one process, halved, and over (M + 1)/M, which is what the schedule waits: to be 1.1 at most. And
// stages of one small layer: the microseconds that the executor takes a micro-batch and stage, to be 20 at most.
#include <tessera/nn/network/program_parts.hpp>
#include <tessera/nn/pipeline/pipeline_parallel.hpp>
#include <tessera/tensor/launch.hpp>
#include <tessera/tessera.hpp>

#include <algorithm>
#include <chrono>
#include <vector>

namespace ts = tessera;
namespace nn = ts::nn;

namespace {

struct stage : ts::axis<2> {};
using workers = ts::mesh<stage>;
struct rows : ts::dyn {};
constexpr int micro_batches = 8;
constexpr ts::pipeline::schedule turns{ts::pipeline::order::one_f_one_b, {.stages = 2, .micro_batches = micro_batches}};

template <ts::index_t Width>
struct model {
  using input = ts::tensor<ts::partition<workers, ts::whole, ts::whole, ts::on<stage, 0>>,
                           ts::shape<rows, ts::dim<Width>>, float>;
  struct block {
    constexpr auto operator()(auto x) const { return tanh(x | nn::linear<Width>{}); }
  };
  struct end {
    constexpr auto operator()(auto x) const { return mean(square(x)); }
  };
  using layers = nn::chain<block, block, block, nn::chain<block, end>>;
  using net = nn::network<nn::staged<layers, stage, nn::by_sizes<2, 3>>, input>;
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

/// Medians of a step in the pipeline, and of the same micro-batches on one process by LibTorch alone.
template <ts::index_t Width>
std::pair<double, double> steps(ts::team<workers>& team, ts::index_t each, int rounds) {
  using of = model<Width>;
  const typename of::net net{team, ts::seed{1}};
  nn::pipeline_parallel pipeline(net, "stage", turns);
  const at::Tensor x = at::rand({each * micro_batches, Width});
  const ts::tensor<ts::dyn> given = ts::distribute<typename of::input>(team, x).dynamic();
  std::vector<at::Tensor> weights;
  for (int i = 0; i < 8; ++i)
    weights.push_back(at::rand(i % 2 == 0 ? std::vector<std::int64_t>{Width, Width} : std::vector<std::int64_t>{Width})
                          .requires_grad_());
  std::vector<double> here, alone;
  for (int i = 0; i < rounds; ++i) {
    const double piped = microseconds(team.state(), [&] { pipeline.forward_backward({given}); });
    const double serial = microseconds(team.state(), [&] {
      if (!team.first()) return;  // by itself
      for (int m = 0; m < micro_batches; ++m) {
        at::Tensor h = x.narrow(0, m * each, each);
        for (std::size_t k = 0; k < 8; k += 2) h = at::tanh(at::linear(h, weights[k], weights[k + 1]));
        (at::mean(at::square(h)) / micro_batches).backward();
      }
    });
    if (i < rounds / 5) continue;
    here.push_back(piped);
    alone.push_back(serial);
  }
  return {median(here), median(alone)};
}

}  // namespace

int main(int argc, char** argv) {
  return ts::launch<workers>(argc, argv, [](ts::team<workers>& team) {
    at::set_num_threads(1);
    at::manual_seed(1);  // the same rows on both
    const auto [piped, serial] = steps<768>(team, 96, 25);
    const auto [tiny, alone] = steps<4>(team, 2, 500);
    const double wanted = serial / 2 * (micro_batches + 1) / micro_batches;
    if (team.first())
      fmt::print(
          "{{\"benchmark\": \"pipeline\", \"stages\": 2, \"micro_batches\": {}, \"step_ms\": {:.2f}, "
          "\"serial_ms\": {:.2f}, \"over_schedule\": {:.3f}, \"tiny_us_a_micro_batch_and_stage\": {:.1f}, "
          "\"tiny_serial_us\": {:.1f}}}\n",
          micro_batches, piped / 1000, serial / 1000, piped / wanted, tiny / (2 * micro_batches),
          alone / (2 * micro_batches));
  });
}
