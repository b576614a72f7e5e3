// Trains a small LeNet on handwritten digits over a grid of workers, and the same network serially beside it.
#include "train.hpp"

#include <CLI/CLI.hpp>

namespace {

using run_mesh = int (*)(int, char**, const tessera::launch_options&, const digits::task&);

/// The meshes that this program was compiled for.
const std::map<std::string, run_mesh>& meshes() {
  static const std::map<std::string, run_mesh> all{
      {"1x1", digits::run<1, 1>}, {"1x2", digits::run<1, 2>}, {"2x2", digits::run<2, 2>},
      {"1x4", digits::run<1, 4>}, {"3x1", digits::run<3, 1>}, {"2x3", digits::run<2, 3>},
  };
  return all;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{
      "Trains a LeNet-like network on 1,797 handwritten digits over a grid of workers.\n"
      "Without a launcher the workers are threads; under mpirun -np N each is a process."};
  digits::task job;
  tessera::launch_options options;
  std::string mesh = "2x2";
  std::string data = DIGITS_DATA "/digits.csv";
  bool alone = false;
  std::vector<std::string> names;
  for (const auto& [name, _] : meshes()) names.push_back(name);
  app.add_option("--mesh", mesh, "rows x columns of workers")->check(CLI::IsMember(names))->capture_default_str();
  app.add_option("--epochs", job.how.epochs, "passes over the training images")
      ->check(CLI::Range(1, 10'000))
      ->capture_default_str();
  app.add_option("--batch", job.how.batch, "images a step")->check(CLI::Range(1, 1438))->capture_default_str();
  app.add_option("--learning-rate", job.how.learning_rate, "step of the optimizer")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--momentum", job.how.momentum, "of the optimizer")
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str();
  app.add_option("--seed", job.how.seed, "of initial weights and shuffling")->capture_default_str();
  app.add_option("--data", data, "file of images")->capture_default_str();
  app.add_option("--figure", job.figure, "where the loss curve and misread digits go, as SVG")
      ->default_val("digits.svg");
  app.add_option("--save", job.save, "file for the trained weights");
  app.add_option("--load", job.load, "file with weights to begin with");
  app.add_option("--transport", options.transport, "auto, in-process, mpi or tcp")
      ->transform(CLI::CheckedTransformer(tessera::transport_names))
      ->default_str("auto");
  app.add_flag("--no-serial", alone, "do not train the serial network for comparison");
  app.add_flag("--checked", options.checked, "compare what the workers do at every operation");
  CLI11_PARSE(app, argc, argv);
  job.serial = !alone;
  try {
    job.data = digits::divide(digits::read(data));
    return meshes().at(mesh)(argc, argv, options, job);
  } catch (const std::exception& e) {
    fmt::print(stderr, "digits: {}\n", e.what());
    return 1;
  }
}
