// Trains a small transformer on the bytes of a text over data x model workers, with all that a long run has. It may be
// killed at any moment, and goes on over another mesh.
#include "train.hpp"

#include <CLI/CLI.hpp>

namespace {

using namespace resume;

using run_mesh = int (*)(int, char**, const ts::launch_options&, const task&);

template <class Cut>
int launched(int argc, char** argv, const ts::launch_options& options, const task& job,
             double (*run)(const ts::team<typename Cut::grid>&, const task&)) {
  return ts::launch<typename Cut::grid>(argc, argv, options, [&](ts::team<typename Cut::grid>& team) {
    const double loss = run(team, job);
    if (team.first()) fmt::print("validation loss of the averaged weights: {}\n", loss);
  });
}

template <int Data, int Model, class Numbers>
int run(int argc, char** argv, const ts::launch_options& options, const task& job) {
  using cut = cut_over<Data, Model, Numbers>;
  return launched<cut>(argc, argv, options, job, train<cut>);
}

template <class Numbers>
int run_serial(int argc, char** argv, const ts::launch_options& options, const task& job) {
  using cut = cut_over<1, 1, Numbers>;
  return launched<cut>(argc, argv, options, job, train_serial<cut>);
}

/// The meshes that this program was compiled for.
template <class Numbers>
std::map<std::string, run_mesh> meshes() {
  return {{"serial", run_serial<Numbers>},
          {"2x2", run<2, 2, Numbers>},
          {"1x3", run<1, 3, Numbers>},
          {"3x1", run<3, 1, Numbers>}};
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{
      "Trains a small transformer on the bytes of a text over workers, some by samples and some by heads, and saves\n"
      "checkpoints. Started again, over any mesh, it goes on from the newest one.\n"
      "Without a launcher the workers are threads; under mpirun -np N each is a process."};
  task job;
  ts::launch_options options;
  std::string mesh = "2x2", from = "/usr/share/common-licenses";
  bool in_double = false;
  std::vector<std::string> names;
  for (const auto& [name, _] : meshes<mixed>()) names.push_back(name);
  app.add_option("--mesh", mesh, "workers by samples x by heads, or plain LibTorch without checkpoints")
      ->check(CLI::IsMember(names))
      ->capture_default_str();
  app.add_option("--folder", job.folder, "where metrics and checkpoints go, and come from")->capture_default_str();
  app.add_option("--text", from, "a file, or a folder whose files are read")->capture_default_str();
  app.add_option("--steps", job.steps, "steps of training")->check(CLI::Range(1, 100'000))->capture_default_str();
  app.add_option("--passes", job.passes, "batches of 8 samples a step")
      ->check(CLI::Range(1, 1'000))
      ->capture_default_str();
  app.add_option("--every", job.every, "steps between checkpoints")
      ->check(CLI::Range(1, 100'000))
      ->capture_default_str();
  app.add_option("--learning-rate", job.rate, "the largest of the schedule")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--seed", job.seed, "of initial weights and batches")->capture_default_str();
  app.add_flag("--double", in_double, "compute in double, not in bfloat16 with float masters");
  app.add_option("--transport", options.transport, "auto, in-process, mpi or tcp")
      ->transform(CLI::CheckedTransformer(tessera::transport_names))
      ->default_str("auto");
  app.add_flag("--checked", options.checked, "compare what the workers do at every operation");
  CLI11_PARSE(app, argc, argv);
  try {
    job.data = read(from, static_cast<std::size_t>(rows * length + 1));
    return (in_double ? meshes<exact>() : meshes<mixed>()).at(mesh)(argc, argv, options, job);
  } catch (const std::exception& e) {
    fmt::print(stderr, "resume: {}\n", e.what());
    return 1;
  }
}
