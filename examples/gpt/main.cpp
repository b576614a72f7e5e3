// Trains a small transformer on the bytes of a text, over workers that divide samples, places and heads, and the same
// network serially beside it.
#include "figure.hpp"
#include "serial.hpp"
#include "text.hpp"

#include <tessera/nn/watch/progress_line.hpp>

#include <torch/optim/adam.h>
#include <CLI/CLI.hpp>

#include <optional>

namespace {

using namespace gpt;

struct task {
  text data;
  int steps = 600;
  double learning_rate = 3e-3;
  std::uint64_t seed = 7;
  std::string figure;
  bool serial = true;
};

constexpr int compared = 50;        ///< steps whose losses are held against the serial run
constexpr int validation_rows = 8;  ///< batches that are judged
constexpr int shown = 320;          ///< bytes of the sample

batch training_batch(const task& job, int step) {
  return batch_of(job.data.train, rows, length, job.seed, static_cast<std::uint64_t>(step));
}
batch validation_batch(const task& job, int i) {
  return batch_of(job.data.held_back, rows, length, ~job.seed, static_cast<std::uint64_t>(i));
}

/// The next byte of each row, drawn by its scores; the same on every worker.
std::int64_t drawn(const at::Tensor& scores, std::mt19937_64& chance) {
  const at::Tensor shares = at::softmax(scores / 0.7, 0).cumsum(0);
  const double at = static_cast<double>(chance() >> 11) * 0x1.0p-53;
  return std::min<std::int64_t>(at::searchsorted(shares, at).item<std::int64_t>(), bytes - 1);
}

/// A byte as a terminal shows it.
char printable(std::int64_t byte) {
  return byte == '\n' || (byte >= ' ' && byte < 127) ? static_cast<char>(byte) : '?';
}

struct history {
  std::vector<double> losses;
  double validation = 0;
};

history train_serial(const task& job, const weights& initial, ts::nn::progress_line& bar) {
  weights w;
  std::vector<at::Tensor> leaves;
  for (const auto& [key, t] : initial) leaves.push_back(w[key] = t.clone().set_requires_grad(true));
  torch::optim::Adam optimizer(leaves, torch::optim::AdamOptions(job.learning_rate));
  history h;
  for (int step = 0; step < job.steps; ++step) {
    const batch b = training_batch(job, step);
    optimizer.zero_grad();
    const at::Tensor loss = serial_loss(w, b.inputs, b.labels);
    loss.backward();
    optimizer.step();
    h.losses.push_back(loss.item<double>());
    bar.update(step + 1, fmt::format("loss {:.4f}", h.losses.back()));
  }
  const at::NoGradGuard no_gradients;
  for (int i = 0; i < validation_rows; ++i) {
    const batch b = validation_batch(job, i);
    h.validation += serial_loss(w, b.inputs, b.labels).item<double>() / validation_rows;
  }
  return h;
}

template <int Data, int Sequence, int Model>
int run(int argc, char** argv, const ts::launch_options& options, const task& job) {
  using lying = over<Data, Sequence, Model>;
  using grid = typename lying::grid;
  using tokens = typename lying::tokens;
  return ts::launch<grid>(argc, argv, options, [&](ts::team<grid>& team) {
    const bool speaks = team.first();
    typename lying::network net{team, ts::seed{job.seed}};
    ts::nn::state_dict initial = ts::nn::state_of(net);
    for (const char* key : {"table.weight", "order.weight"}) initial.at(key) *= 0.02;
    ts::nn::assign(net, initial);
    const auto where = ts::distribute<typename lying::places>(team, at::arange(length, at::kLong));
    const auto loss_of = [&](const batch& b) {
      return ts::nn::cross_entropy(net(ts::distribute<tokens>(team, b.inputs), where),
                                   ts::distribute<tokens>(team, b.labels));
    };
    if (speaks) {
      std::int64_t numbers = 0;
      for (const auto& [key, t] : initial) numbers += t.numel();
      fmt::print("{} x {} x {} workers, data x sequence x model; {} parameters, {} bytes of text\n", Data, Sequence,
                 Model, numbers, job.data.train.size());
    }
    torch::optim::Adam optimizer(net.parameters(), torch::optim::AdamOptions(job.learning_rate));
    history h;
    std::optional<ts::nn::progress_line> bar;
    if (speaks) bar.emplace("step", job.steps);
    for (int step = 0; step < job.steps; ++step) {
      optimizer.zero_grad();
      const auto loss = loss_of(training_batch(job, step));
      loss.backward();
      optimizer.step();
      h.losses.push_back(ts::item(loss));
      if (bar) bar->update(step + 1, fmt::format("loss {:.4f}", h.losses.back()));
    }
    bar.reset();
    std::string sample = "The ";
    {
      const at::NoGradGuard no_gradients;
      for (int i = 0; i < validation_rows; ++i)
        h.validation += ts::item(loss_of(validation_batch(job, i))) / validation_rows;
      std::mt19937_64 chance(job.seed);
      at::Tensor seen = at::zeros({rows, length}, at::kLong);
      while (sample.size() < shown) {
        const std::int64_t known = std::min<std::int64_t>(static_cast<std::int64_t>(sample.size()), length);
        for (std::int64_t i = 0; i < known; ++i)
          seen[0][i] = static_cast<std::int64_t>(
              static_cast<unsigned char>(sample[sample.size() - static_cast<std::size_t>(known - i)]));
        const at::Tensor scores = ts::full_tensor(net(ts::distribute<tokens>(team, seen), where));
        sample += printable(drawn(scores[0].select(1, known - 1), chance));
      }
    }
    if (!speaks) return;
    fmt::print("\n{}\n\n", sample);
    if (!job.figure.empty()) {
      write_figure(job.figure, h.losses, fmt::format("Bytes of text over {} workers", team.size()));
      fmt::print("picture: {}\n", job.figure);
    }
    if (!job.serial) {
      fmt::print("validation loss: {:.3f}\n", h.validation);
      return;
    }
    std::fflush(stdout);
    history serial;
    {
      ts::nn::progress_line serial_bar("serial step", job.steps);
      serial = train_serial(job, initial, serial_bar);
    }
    double worst = 0;
    for (std::size_t i = 0; i < std::min<std::size_t>(compared, h.losses.size()); ++i)
      worst = std::max(worst, std::abs(h.losses[i] - serial.losses[i]));
    fmt::print("validation loss: {:.3f}   (serial: {:.3f})\nlargest difference from serial: {:.3g}\n", h.validation,
               serial.validation, worst);
    std::fflush(stdout);
  });
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{
      "Trains a small transformer on the bytes of a text over workers that divide samples, places and heads.\n"
      "Without a launcher the workers are threads; under mpirun -np 4 each is a process."};
  task job;
  ts::launch_options options;
  std::string from = "/usr/share/common-licenses";
  bool alone = false;
  std::string mesh = "2x1x2";
  app.add_option("--text", from, "a file, or a folder whose files are read")->capture_default_str();
  app.add_option("--mesh", mesh, "workers by samples, by places and by heads: data x sequence x model")
      ->check(CLI::IsMember({"2x1x2", "1x2x2", "2x2x2"}))
      ->capture_default_str();
  app.add_option("--steps", job.steps, "steps of training")->check(CLI::Range(1, 100'000))->capture_default_str();
  app.add_option("--learning-rate", job.learning_rate, "step of the optimizer")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--seed", job.seed, "of initial weights, batches and the sample")->capture_default_str();
  app.add_option("--figure", job.figure, "where the loss curve goes, as SVG")->default_val("gpt.svg");
  app.add_option("--transport", options.transport, "auto, in-process, mpi or tcp")
      ->transform(CLI::CheckedTransformer(tessera::transport_names))
      ->default_str("auto");
  app.add_flag("--no-serial", alone, "do not train the serial network for comparison");
  app.add_flag("--checked", options.checked, "compare what the workers do at every operation");
  CLI11_PARSE(app, argc, argv);
  job.serial = !alone;
  try {
    job.data = read(from, length + 1);
    const auto train = mesh == "1x2x2" ? run<1, 2, 2> : mesh == "2x2x2" ? run<2, 2, 2> : run<2, 1, 2>;
    return train(argc, argv, options, job);
  } catch (const std::exception& e) {
    fmt::print(stderr, "gpt: {}\n", e.what());
    return 1;
  }
}
