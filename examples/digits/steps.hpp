#pragma once
// How examples train a network on the digits over workers, and the same network serially beside it.

#include "../beside_serial.hpp"
#include "figure.hpp"
#include "order.hpp"

#include <tessera/nn/watch/progress_line.hpp>

#include <torch/optim/adam.h>
#include <CLI/CLI.hpp>

#include <functional>
#include <memory>
#include <optional>

namespace digits::by_steps {

namespace ts = tessera;

/// What a run is to do.
struct task {
  std::string name;  ///< of the example
  std::string title;
  std::string axes;  ///< of the mesh
  std::string mesh;  ///< one of those that it was compiled for
  double learning_rate = 0.05;
  bool adam = false;  ///< steps by Adam; else by momentum
  int epochs = 6;
  std::int64_t rows = 64;  ///< images of a step
  int steps = 0;           ///< of an epoch; 0: as many as there are images for
  std::uint64_t seed = 7;
  std::string figure = {};
  bool serial = true;
  split data = {};
};

constexpr std::size_t compared = 12;  ///< steps whose losses are held against the serial run: rounding grows with them

struct history {
  std::vector<double> losses, epochs;  ///< of each step, and their means
  at::Tensor readings;                 ///< of the test images
};

inline double accuracy(const task& job, const history& h) {
  return 100 * h.readings.eq(job.data.test.labels).to(at::kDouble).mean().item<double>();
}

/// Trains by what takes a step back from a batch, and gives its loss; `read` gives the scores of images afterwards.
template <class Back, class Read>
history train(const task& job, const std::vector<at::Tensor>& parameters, ts::nn::progress_line* bar, const Back& back,
              const Read& read) {
  std::unique_ptr<torch::optim::Optimizer> optimizer;
  if (job.adam) optimizer = std::make_unique<torch::optim::Adam>(parameters, job.learning_rate);
  else
    optimizer =
        std::make_unique<torch::optim::SGD>(parameters, torch::optim::SGDOptions(job.learning_rate).momentum(0.9));
  const at::Tensor shown = centred(job.data.train.images);
  const std::int64_t all = shown.size(0) / job.rows;
  const std::int64_t steps = job.steps > 0 ? std::min<std::int64_t>(job.steps, all) : all;
  history h;
  for (int epoch = 1; epoch <= job.epochs; ++epoch) {
    const at::Tensor turns = at::tensor(order(job.seed, epoch, shown.size(0)), at::kLong);
    double sum = 0;
    for (std::int64_t step = 0; step < steps; ++step) {
      const at::Tensor chosen = turns.narrow(0, step * job.rows, job.rows);
      optimizer->zero_grad();
      h.losses.push_back(back(shown.index_select(0, chosen), job.data.train.labels.index_select(0, chosen)));
      optimizer->step();
      sum += h.losses.back() / static_cast<double>(steps);
    }
    h.epochs.push_back(sum);
    if (bar != nullptr) bar->update(epoch, fmt::format("loss {:.4f}", sum));
  }
  const at::NoGradGuard no_gradients;
  h.readings = read(centred(job.data.test.images)).argmax(1);
  return h;
}

/// A loss as LibTorch and the library say it.
struct of_scores {
  static auto ours(const auto& scores, const auto& labels) { return ts::nn::cross_entropy(scores, labels); }
  static at::Tensor theirs(const at::Tensor& scores, const at::Tensor& labels) {
    return at::cross_entropy_loss(scores, labels);
  }
};

template <class Serial, class Loss>
history train_serial(const task& job, const ts::nn::state_dict& initial) {
  Serial serial;
  assign(serial, initial);
  ts::nn::progress_line bar("serial epoch", job.epochs);
  const auto back = [&](const at::Tensor& x, const at::Tensor& y) {
    const at::Tensor loss = Loss::theirs(serial.forward(x), y);
    loss.backward();
    return loss.item<double>();
  };
  return train(job, serial.parameters(), &bar, back, [&](const at::Tensor& x) {
    serial.eval();
    return serial.forward(x);
  });
}

/// Trains a network that gives scores of images on each worker, and LibTorch's module of the same keys on the first.
template <class Network, class Labels, class Serial, class Loss = of_scores>
int run(int argc, char** argv, const ts::launch_options& options, const task& job) {
  using images = typename Network::input;
  using grid = typename images::partition_type::mesh_type;
  return ts::launch<grid>(argc, argv, options, [&](ts::team<grid>& team) {
    const bool speaks = team.first();
    Network net{team, ts::seed{job.seed}};
    const ts::nn::state_dict initial = ts::nn::state_of(net);
    std::optional<ts::nn::progress_line> bar;
    if (speaks) {
      fmt::print("{} workers, {} = {}; {} parameters and statistics\n", team.size(), job.axes, job.mesh,
                 initial.size());
      bar.emplace("epoch", job.epochs);
    }
    const auto back = [&](const at::Tensor& x, const at::Tensor& y) {
      const auto loss = Loss::ours(net(ts::distribute<images>(team, x)), ts::distribute<Labels>(team, y));
      loss.backward();
      return ts::item(loss);
    };
    const history h = train(job, net.parameters(), bar ? &*bar : nullptr, back, [&](const at::Tensor& x) {
      net.eval();
      return ts::full_tensor(net(ts::distribute<images>(team, x)));
    });
    bar.reset();
    if (!speaks) return;
    fmt::print("test accuracy: {:.2f} %\n", accuracy(job, h));
    if (!job.figure.empty()) {
      write_figure(job.figure, h.epochs, misreads(job.data.test, h.readings), job.title);
      fmt::print("picture: {}\n", job.figure);
    }
    std::fflush(stdout);
    if (!job.serial) return;
    const history serial = train_serial<Serial, Loss>(job, initial);
    double worst = 0;
    for (std::size_t i = 0; i < std::min(compared, h.losses.size()); ++i)
      worst = std::max(worst, std::abs(h.losses[i] - serial.losses[i]));
    fmt::print("serial test accuracy: {:.2f} %\nlargest difference from serial: {:.3g}\n", accuracy(job, serial),
               worst);
    std::fflush(stdout);
    if (!(worst <= 1e-9))
      throw std::runtime_error(fmt::format("[{}.serial.differs] the network differs from one process", job.name));
  });
}

/// The meshes that a program was compiled for, each with its run.
using meshes = std::map<std::string, std::function<int(int, char**, const ts::launch_options&, const task&)>>;

/// The program: reads options and data, and runs over the mesh that is asked for.
inline int main_of(int argc, char** argv, const char* says, task job, const meshes& runs) {
  CLI::App app{fmt::format("{}\nWithout a launcher the workers are threads; under mpirun each is a process.", says)};
  ts::launch_options options;
  std::string data = DIGITS_DATA "/digits.csv";
  bool alone = false;
  std::vector<std::string> names;
  for (const auto& [name, _] : runs) names.push_back(name);
  app.add_option("--mesh", job.mesh, "workers: " + job.axes)->check(CLI::IsMember(names))->capture_default_str();
  app.add_option("--epochs", job.epochs, "passes over the training images")
      ->check(CLI::Range(1, 10'000))
      ->capture_default_str();
  app.add_option("--steps", job.steps, "steps of a pass, at most; 0: all")
      ->check(CLI::Range(0, 10'000))
      ->capture_default_str();
  app.add_option("--learning-rate", job.learning_rate, "step of the optimizer")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--seed", job.seed, "of initial weights and shuffling")->capture_default_str();
  app.add_option("--data", data, "file of images")->capture_default_str();
  app.add_option("--figure", job.figure, "where the loss curve and misread digits go, as SVG")
      ->default_val(job.name + ".svg");
  app.add_option("--transport", options.transport, "auto, in-process, mpi or tcp")
      ->transform(CLI::CheckedTransformer(ts::transport_names))
      ->default_str("auto");
  app.add_flag("--no-serial", alone, "do not train the serial network for comparison");
  app.add_flag("--checked", options.checked, "compare what the workers do at every operation");
  CLI11_PARSE(app, argc, argv);
  job.serial = !alone;
  try {
    job.data = divide(read(data));
    return runs.at(job.mesh)(argc, argv, options, job);
  } catch (const std::exception& e) {
    fmt::print(stderr, "{}: {}\n", job.name, e.what());
    return 1;
  }
}

}  // namespace digits::by_steps
