// Trains a small transformer in a pipeline, over data x stage x model workers. In mid-way it goes on over another mesh,
// with another number of stages, from its checkpoint. The same network is trained serially beside it.
#include "train.hpp"

#include <CLI/CLI.hpp>

#include <cmath>

namespace {

using namespace staged;

/// A part of the training over a mesh.
struct part {
  int until;  ///< which step
  bool goes_on;
  std::vector<double>* losses;  ///< of all parts
  nn::state_dict* initial;      ///< the weights with which the first begins
};

template <int Data, int Stages, int Model, bool Mixed = false>
int run(int argc, char** argv, const ts::launch_options& options, const task& job, const part& of) {
  using cut = over<Data, Stages, Model, Mixed>;
  return ts::launch<typename cut::grid>(argc, argv, options, [&](ts::team<typename cut::grid>& team) {
    nn::state_dict initial;
    if (!of.goes_on) initial = begin(typename cut::network{team, ts::seed{job.seed}});
    const std::vector<double> losses = train<cut>(team, job, of.until, of.goes_on);
    if (!team.first()) return;
    if (!of.goes_on) *of.initial = std::move(initial);
    of.losses->insert(of.losses->end(), losses.begin(), losses.end());
  });
}

using run_mesh = int (*)(int, char**, const ts::launch_options&, const task&, const part&);
const std::map<std::string, run_mesh> meshes{
    {"2x2x2", run<2, 2, 2>}, {"1x4x2", run<1, 4, 2>}, {"1x2x2", run<1, 2, 2>}, {"1x4x1", run<1, 4, 1>}};
const std::map<std::string, run_mesh> mixed_meshes{{"2x2x2", run<2, 2, 2, true>}, {"1x4x2", run<1, 4, 2, true>}};

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{
      "Trains a small transformer on the bytes of a text, its blocks on stages that take turns. Half-way it goes on\n"
      "over another mesh from its checkpoint, and it is held against the same network in plain LibTorch.\n"
      "Without a launcher the workers are threads; under mpirun -np 8 each is a process."};
  task job;
  ts::launch_options options;
  bool mixed = false;
  std::string first = "2x2x2", then = "1x4x2", from = "/usr/share/common-licenses";
  const std::map<std::string, ts::pipeline::order> orders{{"gpipe", ts::pipeline::order::gpipe},
                                                          {"1f1b", ts::pipeline::order::one_f_one_b},
                                                          {"zb-h1", ts::pipeline::order::zb_h1}};
  std::vector<std::string> names;
  for (const auto& [name, _] : meshes) names.push_back(name);
  app.add_option("--first", first, "data x stage x model workers of the first half of the steps")
      ->check(CLI::IsMember(names))
      ->capture_default_str();
  app.add_option("--then", then, "those of the second half; as many workers")
      ->check(CLI::IsMember(names))
      ->capture_default_str();
  app.add_option("--schedule", job.by, "gpipe, 1f1b or zb-h1")
      ->transform(CLI::CheckedTransformer(orders, CLI::ignore_case))
      ->default_str("1f1b");
  app.add_option("--micro-batches", job.micro_batches, "into which each worker's rows are cut")
      ->check(CLI::Range(1, 8))
      ->capture_default_str();
  app.add_option("--steps", job.steps, "steps of training")->check(CLI::Range(2, 100'000))->capture_default_str();
  app.add_option("--learning-rate", job.rate, "step of the optimizer")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--seed", job.seed, "of initial weights and batches")->capture_default_str();
  app.add_option("--text", from, "a file, or a folder whose files are read")->capture_default_str();
  app.add_option("--folder", job.folder, "where the checkpoint goes")->capture_default_str();
  app.add_option("--figure", job.figure, "where the schedule beside what was measured goes, as SVG")
      ->capture_default_str();
  app.add_option("--transport", options.transport, "auto, in-process, mpi or tcp")
      ->transform(CLI::CheckedTransformer(tessera::transport_names))
      ->default_str("auto");
  app.add_flag("--experts", mixed, "each place goes through two of four experts; over 2x2x2 and 1x4x2");
  app.add_flag("--checked", options.checked, "compare what the workers do at every operation");
  CLI11_PARSE(app, argc, argv);
  try {
    job.data = gpt::read(from, length + 1);
    std::vector<double> losses;
    nn::state_dict initial;
    const auto& all = mixed ? mixed_meshes : meshes;
    for (const std::string& mesh : {first, then})
      if (!all.contains(mesh))
        throw std::runtime_error(
            fmt::format("[pipeline.mesh] {} is not compiled with experts; take 2x2x2 or 1x4x2", mesh));
    const part one{job.steps / 2, false, &losses, &initial}, two{job.steps, true, &losses, &initial};
    if (const int failed = all.at(first)(argc, argv, options, job, one)) return failed;
    if (const int failed = all.at(then)(argc, argv, options, job, two)) return failed;
    if (losses.empty()) return 0;  // another worker's process says it
    std::fflush(stdout);
    const std::vector<double> serial = train_serially(initial, job);
    double worst = losses.size() == serial.size() ? 0 : 1;
    for (std::size_t i = 0; i < losses.size() && worst < 1; ++i)
      worst = std::max(worst, std::abs(losses[i] - serial[i]));
    fmt::print("loss: {:.3f} at first, {:.3f} at last\nlargest difference from serial: {:.3g}\n", losses.front(),
               losses.back(), worst);
    if (!job.figure.empty()) fmt::print("picture: {}\n", job.figure.string());
    return worst < 1e-9 ? 0 : 1;
  } catch (const std::exception& e) {
    fmt::print(stderr, "pipeline: {}\n", e.what());
    return 1;
  }
}
