// Trains a Fourier neural operator to solve Burgers' equation, its fields and its spectral weights cut over four
// workers, and the same serially.
#include "../digits/order.hpp"
#include "equation.hpp"
#include "figure.hpp"
#include "serial.hpp"

#include <tessera/nn/watch/progress_line.hpp>

#include <torch/optim/adam.h>
#include <CLI/CLI.hpp>

#include <optional>

namespace {

using namespace fno;

struct task {
  flows_in_time train, test;
  int steps = 300;
  std::int64_t rows = 8;  ///< fields of a step
  double learning_rate = 1.5e-2;
  std::uint64_t seed = 7;
  std::string figure;
  bool serial = true;
};

constexpr int compared = 20;  ///< steps whose losses are held against the serial run
constexpr int judged = 10;    ///< steps between tests

/// Adam, to which a complex parameter is its real and imaginary parts.
class real_adam {
 public:
  real_adam(const std::vector<at::Tensor>& parameters, double rate)
      : parameters_(parameters), rate_(rate), optimizer_(parts(parameters), torch::optim::AdamOptions(rate)) {}

  /// A step with the share of the learning rate that is left of a half cosine.
  void step(double done) {
    const double rate = rate_ * (1 + std::cos(3.14159265358979 * done)) / 2;
    auto& group = optimizer_.param_groups()[0];
    static_cast<torch::optim::AdamOptions&>(group.options()).lr(rate);
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
      const at::Tensor& gradient = parameters_[i].grad();
      group.params()[i].mutable_grad() = gradient.is_complex() ? at::view_as_real(gradient.resolve_conj()) : gradient;
    }
    optimizer_.step();
    for (const at::Tensor& p : parameters_) p.mutable_grad().reset();
  }

 private:
  static std::vector<at::Tensor> parts(const std::vector<at::Tensor>& parameters) {
    std::vector<at::Tensor> real;
    for (const at::Tensor& p : parameters) real.push_back(p.is_complex() ? at::view_as_real(p.detach()) : p.detach());
    return real;
  }
  std::vector<at::Tensor> parameters_;
  double rate_;
  torch::optim::Adam optimizer_;
};

at::Tensor of_step(const task& job, const at::Tensor& all, int step) {
  const auto each = all.size(0) / job.rows;
  const auto chosen = digits::order(job.seed, static_cast<int>(step / each) + 1, all.size(0));
  return all.index_select(0, at::tensor(chosen, at::kLong).narrow(0, step % each * job.rows, job.rows));
}

/// ‖y − z‖ / ‖z‖, the mean over fields.
double relative_error(const at::Tensor& y, const at::Tensor& z) {
  return ((y - z).norm(2, {1, 2, 3}) / z.norm(2, {1, 2, 3})).mean().item<double>();
}

struct history {
  std::vector<double> losses, errors;
  at::Tensor predicted;
};

/// Trains a model that has losses, predictions and parameters.
template <class Loss, class Predict>
history train(const task& job, const std::vector<at::Tensor>& parameters, ts::nn::progress_line* bar,
              const Loss& loss_of, const Predict& predict) {
  real_adam optimizer(parameters, job.learning_rate);
  history h;
  const auto judge = [&] {
    const at::NoGradGuard no_gradients;
    h.predicted = predict(job.test.before);
    h.errors.push_back(relative_error(h.predicted, job.test.after));
  };
  judge();
  for (int step = 0; step < job.steps; ++step) {
    h.losses.push_back(loss_of(of_step(job, job.train.before, step), of_step(job, job.train.after, step)));
    optimizer.step(static_cast<double>(step) / job.steps);
    if ((step + 1) % judged == 0 || step + 1 == job.steps) judge();
    if (bar != nullptr)
      bar->update(step + 1, fmt::format("loss {:.2e}  test error {:.2f} %", h.losses.back(), 100 * h.errors.back()));
  }
  return h;
}

history train_serial(const task& job, const weights& initial, ts::nn::progress_line& bar) {
  weights w;
  std::vector<at::Tensor> leaves;
  for (const auto& [key, t] : initial) leaves.push_back(w[key] = t.clone().set_requires_grad(true));
  const auto loss_of = [&](const at::Tensor& u, const at::Tensor& v) {
    const at::Tensor loss = at::mse_loss(serial_operator(w, u), v);
    loss.backward();
    return loss.item<double>();
  };
  return train(job, leaves, &bar, loss_of, [&](const at::Tensor& u) { return serial_operator(w, u); });
}

/// The largest difference of a gradient from the serial one, in parts of its largest element.
double gradients_apart(const ts::team<grid>& team, const network& net, const weights& initial, const at::Tensor& u,
                       const at::Tensor& v) {
  weights w;
  for (const auto& [key, t] : initial) w[key] = t.clone().set_requires_grad(true);
  const at::Tensor in = u.clone().set_requires_grad(true);
  at::mse_loss(serial_operator(w, in), v).backward();
  auto x = ts::distribute<fields>(team, u);
  x.requires_grad();
  nn::mse_loss(net(x), ts::distribute<fields>(team, v)).backward();
  const auto apart = [](const at::Tensor& ours, const at::Tensor& theirs) {
    return ((ours - theirs).abs().max() / theirs.abs().max()).item<double>();
  };
  double worst = apart(ts::full_tensor(x.grad()), in.grad());
  net.each_parameter([&](const nn::parameter& p) {
    const ts::tensor<ts::dyn> gradient(p.stored().team(), ts::cotangent(p.stored().layout()),
                                       p.stored().local().grad());
    worst = std::max(worst, apart(ts::full_tensor(gradient), w.at(p.key()).grad()));
  });
  for (const at::Tensor& p : net.parameters()) p.mutable_grad().reset();
  return worst;
}

int run(int argc, char** argv, const ts::launch_options& options, const task& job) {
  return ts::launch<grid>(argc, argv, options, [&](ts::team<grid>& team) {
    const bool speaks = team.first();
    network net{team, ts::seed{job.seed}};
    const nn::state_dict initial = nn::state_of(net);
    const double apart = gradients_apart(team, net, initial, job.test.before, job.test.after);
    std::optional<ts::nn::progress_line> bar;
    if (speaks) {
      const auto moved = ts::traffic<network>(ts::bind<batch>(job.rows));
      fmt::print("{} workers, {} fields of {} x {} to learn from; forward moves {} bytes in {} messages\n", team.size(),
                 job.train.before.size(0), size, size, moved.forward.bytes, moved.forward.messages);
      bar.emplace("step", job.steps);
    }
    const auto loss_of = [&](const at::Tensor& u, const at::Tensor& v) {
      const auto loss = nn::mse_loss(net(ts::distribute<fields>(team, u)), ts::distribute<fields>(team, v));
      loss.backward();
      return ts::item(loss);
    };
    const history h = train(job, net.parameters(), bar ? &*bar : nullptr, loss_of,
                            [&](const at::Tensor& u) { return ts::full_tensor(net(ts::distribute<fields>(team, u))); });
    bar.reset();
    if (!speaks) return;
    fmt::print("test error: {:.2f} %, untrained {:.0f} %\n", 100 * h.errors.back(), 100 * h.errors.front());
    if (!job.figure.empty()) {
      write_figure(job.figure, job.test.before, job.test.after, h.predicted, h.errors, job.steps,
                   "Burgers' equation by a Fourier neural operator, 2 x 2 workers");
      fmt::print("picture: {}\n", job.figure);
    }
    if (!job.serial) return;
    std::fflush(stdout);
    history serial;
    {
      ts::nn::progress_line serial_bar("serial step", job.steps);
      serial = train_serial(job, initial, serial_bar);
    }
    double worst = apart;
    for (std::size_t i = 0; i < std::min<std::size_t>(compared, h.losses.size()); ++i)
      worst = std::max(worst, std::abs(h.losses[i] - serial.losses[i]));
    fmt::print("serial test error: {:.2f} %\nlargest difference from serial: {:.3g}\n", 100 * serial.errors.back(),
               worst);
    std::fflush(stdout);
    if (!(worst <= 1e-9)) throw std::runtime_error("[fno.serial.differs] the operator differs from one process");
  });
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{
      "Trains a Fourier neural operator on solutions of Burgers' equation over four workers, which cut space and wave "
      "numbers.\n"
      "Without a launcher the workers are threads; under mpirun -np 4 each is a process."};
  task job;
  ts::launch_options options;
  std::int64_t samples = 96;
  bool alone = false;
  app.add_option("--steps", job.steps, "steps of training")->check(CLI::Range(1, 100'000))->capture_default_str();
  app.add_option("--samples", samples, "fields to learn from")->check(CLI::Range(8, 100'000))->capture_default_str();
  app.add_option("--learning-rate", job.learning_rate, "first step of the optimizer")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--seed", job.seed, "of initial weights, fields and shuffling")->capture_default_str();
  app.add_option("--figure", job.figure, "where the fields and the error curve go, as SVG")->default_val("fno.svg");
  app.add_option("--transport", options.transport, "auto, in-process, mpi or tcp")
      ->transform(CLI::CheckedTransformer(tessera::transport_names))
      ->default_str("auto");
  app.add_flag("--no-serial", alone, "do not train the serial operator for comparison");
  app.add_flag("--checked", options.checked, "compare what the workers do at every operation");
  CLI11_PARSE(app, argc, argv);
  job.serial = !alone;
  try {
    job.train = burgers(samples, size, job.seed);
    job.test = burgers(16, size, ~job.seed);
    return run(argc, argv, options, job);
  } catch (const std::exception& e) {
    fmt::print(stderr, "fno: {}\n", e.what());
    return 1;
  }
}
