// Trains a residual network on handwritten digits over workers that cut height and channels, and the same network
// serially beside it.
#include "beside_serial.hpp"
#include "digits/figure.hpp"
#include "digits/order.hpp"

#include <tessera/nn/watch/progress_line.hpp>

#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>
#include <CLI/CLI.hpp>

#include <optional>

namespace {

namespace ts = tessera;
namespace nn = tessera::nn;

struct space : ts::axis<2> {};     // cuts the height of images
struct channels : ts::axis<2> {};  // cuts channels
using grid = ts::mesh<space, channels>;
struct batch : ts::dyn {};
using images =
    ts::tensor<ts::partition<grid, ts::whole, ts::whole, ts::blocks<space>, ts::whole, ts::invariant<channels>>,
               ts::shape<batch, ts::dim<1>, ts::dim<8>, ts::dim<8>>, double>;
using labels =
    ts::tensor<ts::partition<grid, ts::whole, ts::invariant<space, channels>>, ts::shape<batch>, std::int64_t>;

// [network]
template <ts::index_t Out, class... Options>
using three = nn::conv<Out, ts::kernel<3, 3>, ts::padding<1, 1>, ts::no_bias, Options...>;
template <ts::index_t Out>
using two_by_two = nn::chain<three<Out>, nn::batch_norm<>, nn::relu, three<Out>, nn::batch_norm<>>;

/// He et al. 2016: what is learnt is added to what came, which a convolution of one pixel widens where there are more
/// channels.
template <ts::index_t Out>
struct stage {
  constexpr auto operator()(auto x) const {
    const auto same = relu(x + (x | nn::named<struct first, two_by_two<Out>>{}));
    const auto wider = same | nn::named<struct skip, nn::conv<2 * Out, ts::kernel<1, 1>>>{};
    return relu(wider + (same | nn::named<struct second, two_by_two<2 * Out>>{}));
  }
};
struct residual_network {
  constexpr auto operator()(auto x) const {
    const auto begin =
        x | nn::named<struct stem, nn::chain<three<8, ts::cut_out<channels>>, nn::batch_norm<>, nn::relu>>{};
    const auto small = begin | nn::named<struct large, stage<8>>{} | nn::max_pool<ts::kernel<2, 2>>{} |
                       nn::named<struct small_ones, stage<16>>{};
    return small | nn::global_avg_pool{} | nn::flatten{} | nn::named<struct head, nn::linear<10>>{};
  }
};
using network = nn::network<residual_network, images>;
// [end]

torch::nn::Conv2d three_by_three(std::int64_t in, std::int64_t out) {
  return torch::nn::Conv2d(torch::nn::Conv2dOptions(in, out, 3).padding(1).bias(false));
}
torch::nn::Sequential serial_two(std::int64_t in, std::int64_t out) {
  return torch::nn::Sequential(three_by_three(in, out), torch::nn::BatchNorm2d(out), torch::nn::ReLU(),
                               three_by_three(out, out), torch::nn::BatchNorm2d(out));
}
struct serial_stage : torch::nn::Module {
  torch::nn::Sequential first, second;
  torch::nn::Conv2d skip;

  explicit serial_stage(std::int64_t out)
      : first(register_module("first", serial_two(out, out))),
        second(register_module("second", serial_two(out, 2 * out))),
        skip(register_module("skip", torch::nn::Conv2d(torch::nn::Conv2dOptions(out, 2 * out, 1)))) {}
  at::Tensor forward(const at::Tensor& x) {
    const at::Tensor same = at::relu(x + first->forward(x));
    return at::relu(skip(same) + second->forward(same));
  }
};
struct serial_network : torch::nn::Module {
  torch::nn::Sequential stem = register_module(
      "stem", torch::nn::Sequential(three_by_three(1, 8), torch::nn::BatchNorm2d(8), torch::nn::ReLU()));
  std::shared_ptr<serial_stage> large = register_module("large", std::make_shared<serial_stage>(8));
  std::shared_ptr<serial_stage> small_ones = register_module("small_ones", std::make_shared<serial_stage>(16));
  torch::nn::Linear head = register_module("head", torch::nn::Linear(32, 10));

  at::Tensor forward(const at::Tensor& x) {
    return head(small_ones->forward(at::max_pool2d(large->forward(stem->forward(x)), 2)).mean({2, 3}));
  }
};

struct task {
  digits::split data;
  int epochs = 6;
  std::int64_t rows = 64;  ///< images of a step
  int steps = 0;           ///< of an epoch; 0: as many as there are images for
  double learning_rate = 0.05;
  std::uint64_t seed = 7;
  std::string figure;
  bool serial = true;
};

constexpr std::size_t compared = 12;  ///< steps whose losses are held against the serial run: rounding grows with them

struct history {
  std::vector<double> losses, epochs;  ///< of each step, and their means
  at::Tensor readings;                 ///< of the test images
};

/// Trains a network by its loss of a batch; `read` gives scores with the statistics of training.
template <class Loss, class Read>
history train(const task& job, const std::vector<at::Tensor>& parameters, ts::nn::progress_line* bar,
              const Loss& loss_of, const Read& read) {
  torch::optim::SGD optimizer(parameters, torch::optim::SGDOptions(job.learning_rate).momentum(0.9));
  const at::Tensor shown = digits::centred(job.data.train.images);
  const std::int64_t all = shown.size(0) / job.rows,
                     steps = job.steps > 0 ? std::min<std::int64_t>(job.steps, all) : all;
  history h;
  for (int epoch = 1; epoch <= job.epochs; ++epoch) {
    const at::Tensor turns = at::tensor(digits::order(job.seed, epoch, shown.size(0)), at::kLong);
    double sum = 0;
    for (std::int64_t step = 0; step < steps; ++step) {
      const at::Tensor chosen = turns.narrow(0, step * job.rows, job.rows);
      optimizer.zero_grad();
      h.losses.push_back(loss_of(shown.index_select(0, chosen), job.data.train.labels.index_select(0, chosen)));
      optimizer.step();
      sum += h.losses.back() / static_cast<double>(steps);
    }
    h.epochs.push_back(sum);
    if (bar != nullptr) bar->update(epoch, fmt::format("loss {:.4f}", sum));
  }
  const at::NoGradGuard no_gradients;
  h.readings = read(digits::centred(job.data.test.images)).argmax(1);
  return h;
}

double accuracy(const task& job, const history& h) {
  return 100 * h.readings.eq(job.data.test.labels).to(at::kDouble).mean().item<double>();
}

history train_serial(const task& job, const nn::state_dict& initial) {
  serial_network serial;
  assign(serial, initial);
  ts::nn::progress_line bar("serial epoch", job.epochs);
  const auto loss_of = [&](const at::Tensor& x, const at::Tensor& y) {
    const at::Tensor loss = at::cross_entropy_loss(serial.forward(x), y);
    loss.backward();
    return loss.item<double>();
  };
  return train(job, serial.parameters(), &bar, loss_of, [&](const at::Tensor& x) {
    serial.eval();
    return serial.forward(x);
  });
}

int run(int argc, char** argv, const ts::launch_options& options, const task& job) {
  return ts::launch<grid>(argc, argv, options, [&](ts::team<grid>& team) {
    const bool speaks = team.first();
    network net{team, ts::seed{job.seed}};
    const nn::state_dict initial = nn::state_of(net);
    std::optional<ts::nn::progress_line> bar;
    if (speaks) {
      fmt::print("{} workers, height x channels; {} parameters and statistics\n", team.size(), initial.size());
      bar.emplace("epoch", job.epochs);
    }
    const auto loss_of = [&](const at::Tensor& x, const at::Tensor& y) {
      const auto loss = nn::cross_entropy(net(ts::distribute<images>(team, x)), ts::distribute<labels>(team, y));
      loss.backward();
      return ts::item(loss);
    };
    const history h = train(job, net.parameters(), bar ? &*bar : nullptr, loss_of, [&](const at::Tensor& x) {
      net.eval();
      return ts::full_tensor(net(ts::distribute<images>(team, x)));
    });
    bar.reset();
    if (!speaks) return;
    fmt::print("test accuracy: {:.2f} %\n", accuracy(job, h));
    if (!job.figure.empty()) {
      digits::write_figure(job.figure, h.epochs, digits::misreads(job.data.test, h.readings),
                           "A residual network on digits, 2 x 2 workers cut height and channels");
      fmt::print("picture: {}\n", job.figure);
    }
    if (!job.serial) return;
    std::fflush(stdout);
    const history serial = train_serial(job, initial);
    double worst = 0;
    for (std::size_t i = 0; i < std::min(compared, h.losses.size()); ++i)
      worst = std::max(worst, std::abs(h.losses[i] - serial.losses[i]));
    fmt::print("serial test accuracy: {:.2f} %\nlargest difference from serial: {:.3g}\n", accuracy(job, serial),
               worst);
    std::fflush(stdout);
    if (!(worst <= 1e-9)) throw std::runtime_error("[resnet.serial.differs] the network differs from one process");
  });
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{
      "Trains a residual network with batch norms on 1,797 handwritten digits over four workers, which cut height and "
      "channels.\n"
      "Without a launcher the workers are threads; under mpirun -np 4 each is a process."};
  task job;
  ts::launch_options options;
  std::string data = DIGITS_DATA "/digits.csv";
  bool alone = false;
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
      ->default_val("resnet.svg");
  app.add_option("--transport", options.transport, "auto, in-process, mpi or tcp")
      ->transform(CLI::CheckedTransformer(ts::transport_names))
      ->default_str("auto");
  app.add_flag("--no-serial", alone, "do not train the serial network for comparison");
  app.add_flag("--checked", options.checked, "compare what the workers do at every operation");
  CLI11_PARSE(app, argc, argv);
  job.serial = !alone;
  try {
    job.data = digits::divide(digits::read(data));
    return run(argc, argv, options, job);
  } catch (const std::exception& e) {
    fmt::print(stderr, "resnet: {}\n", e.what());
    return 1;
  }
}
