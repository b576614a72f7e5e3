// A training run that is stopped at some step and goes on over another mesh. Each worker keeps a part of the
// optimizer's state (ZeRO-1). A step has several passes, gradients are clipped and weights averaged; one checkpoint
// holds it all. The program fails unless losses and weights are those of a run that was never stopped.
#include <tessera/nn/data/loader.hpp>
#include <tessera/nn/file/checkpoint.hpp>
#include <tessera/nn/training/average.hpp>
#include <tessera/tessera.hpp>

#include <torch/optim/adamw.h>
#include <torch/optim/schedulers/step_lr.h>

#include <unistd.h>

#include <filesystem>
#include <limits>

namespace ts = tessera;
namespace nn = tessera::nn;

using sample = torch::data::Example<at::Tensor, std::int64_t>;
struct waves : torch::data::datasets::Dataset<waves, sample> {
  sample get(std::size_t i) override {
    const at::Tensor x = at::sin((at::arange(6, at::kDouble) + 6 * static_cast<double>(i)).square());
    return {x, (x.narrow(0, 0, 3) + x.narrow(0, 3, 3)).argmax().item<std::int64_t>()};
  }
  std::optional<std::size_t> size() const override { return 101; }
};

// [types]
struct batch : ts::dyn {};

/// A network whose batch is cut over D workers and whose features over M, its optimizer's state over D.
template <int D, int M>
struct cut_over {
  struct data : ts::axis<D> {};
  struct model : ts::axis<M> {};
  using grid = ts::mesh<data, model>;
  using rows = ts::partition<grid, ts::blocks<data>, ts::whole, ts::invariant<model>>;
  using inputs = ts::tensor<rows, ts::shape<batch, ts::dim<6>>, double>;
  using labels =
      ts::tensor<ts::partition<grid, ts::blocks<data>, ts::invariant<model>>, ts::shape<batch>, std::int64_t>;
  using layers = nn::chain<nn::linear<32, ts::cut_out<model>>, nn::relu,
                           nn::linear<16, ts::cut_in<model>, ts::output_as<rows>>, nn::layer_norm<>, nn::linear<3>>;
  using net_type = nn::network<nn::bundled<layers, data>, inputs>;
};
// [end]

struct outcome {
  std::vector<double> losses;  ///< of each step
  nn::state_dict weights;
};

constexpr int passes = 3;

// [train]
/// Trains to a step, from the newest checkpoint of the folder if there is one, and saves every few steps.
template <class Cut>
outcome trained(const ts::team<typename Cut::grid>& team, const std::filesystem::path& folder, int until, int stop_at) {
  typename Cut::net_type net{team, ts::seed{7}};
  torch::optim::AdamW optimizer(net.parameters(), torch::optim::AdamWOptions(1e-2));
  torch::optim::StepLR rate(optimizer, 8, 0.5);
  nn::average average(net, {.decay = 0.9});
  nn::loader<typename Cut::inputs, typename Cut::labels> samples(team, waves(), {.batch = 10, .seed = {7}});
  int step = 0;
  nn::checkpoint all{{"net", net},         {"optimizer", optimizer}, {"rate", rate},
                     {"average", average}, {"samples", samples},     {"step", step}};
  try {
    all.load(folder);
  } catch (const ts::error& e) {
    if (!e.is(ts::code::checkpoint_missing)) throw;  // a run that begins, on every worker
  }
  outcome run;
  while (step < until) {
    if (step == stop_at) return run;  // as a job whose time is over
    optimizer.zero_grad();
    double sum = 0;
    for (int pass = 0; pass < passes; ++pass) {
      auto next = samples.next();
      if (!next) next = samples.next();  // the next epoch
      const nn::accumulation window(net, pass + 1 == passes);
      const auto loss = nn::cross_entropy(net(next->data), next->target) / static_cast<double>(passes);
      loss.backward();
      sum += ts::item(loss);
    }
    nn::clip_grad_norm(net, 0.5);
    optimizer.step();
    rate.step();
    average.update();
    run.losses.push_back(sum);
    if (++step % 4 == 0) all.save(folder, {.keep = 2});
  }
  const auto in = average.swapped_in();
  run.weights = nn::state_of(net);
  return run;
}
// [end]

/// Runs it over a mesh, from what is in the folder.
template <class Cut>
outcome launched(int argc, char** argv, const std::filesystem::path& folder, int until,
                 int stop_at = std::numeric_limits<int>::max()) {
  outcome run;
  const int status = ts::launch<typename Cut::grid>(argc, argv, [&](ts::team<typename Cut::grid>& team) {
    const outcome mine = trained<Cut>(team, folder, until, stop_at);
    if (team.first()) run = mine;
  });
  if (status != 0) std::exit(status);
  return run;
}

int main(int argc, char** argv) {
  constexpr int steps = 24;
  const ts::engine::launch_environment here = ts::read_environment();
  const int job = here.world > 1 ? ::getppid() : ::getpid();  // the launcher's number is the same for all processes
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / fmt::format("tessera-checkpoints-{}", job);
  using square = cut_over<2, 2>;
  using row = cut_over<4, 1>;
  const outcome whole = launched<square>(argc, argv, folder / "whole", steps);
  launched<square>(argc, argv, folder / "stopped", steps, 14);  // its newest checkpoint is of step 12
  const outcome rest = launched<row>(argc, argv, folder / "stopped", steps);
  if (here.rank != 0) return 0;
  double far = rest.losses.size() == steps - 12 ? 0 : 1;
  for (std::size_t i = 0; i < rest.losses.size(); ++i)
    far = std::max(far, std::abs(rest.losses[i] - whole.losses[i + 12]));
  for (const auto& [key, w] : whole.weights) far = std::max(far, (w - rest.weights.at(key)).abs().max().item<double>());
  std::filesystem::remove_all(folder);
  if (!(far < 1e-10)) {
    fmt::print(stderr, "a run that goes on differs from one that was never stopped by {}\n", far);
    return 1;
  }
  fmt::print("stopped at step 14 over 2 x 2 workers, gone on from step 12 over 4 x 1: largest difference {:.1e}\n",
             far);
  return 0;
}
