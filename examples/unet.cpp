// A residual network and a U-Net with batch norms and a loss per pixel, compared with one process on images cut in
// several ways. Then the U-Net learns which pixels of noisy images are of discs and which of rings, on four workers and
// serially.
#include <tessera/nn/watch/progress_line.hpp>
#include <tessera/tessera.hpp>

#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>
#include <CLI/CLI.hpp>

#include <cmath>
#include <numbers>
#include <optional>

#include "beside_serial.hpp"
#include "digits/order.hpp"
#include "scenes.hpp"
namespace ts = tessera;
namespace nn = tessera::nn;

// [residual.serial]
torch::nn::Conv2d three_by_three(std::int64_t in, std::int64_t out) {
  return torch::nn::Conv2d(torch::nn::Conv2dOptions(in, out, 3).padding(1).bias(false));
}
struct serial_residual : torch::nn::Module {
  torch::nn::Sequential inner;
  torch::nn::Conv2d skip;

  serial_residual(std::int64_t in, std::int64_t out)
      : inner(register_module(
            "inner", torch::nn::Sequential(three_by_three(in, out), torch::nn::BatchNorm2d(out), torch::nn::ReLU(),
                                           three_by_three(out, out), torch::nn::BatchNorm2d(out)))),
        skip(register_module("skip", torch::nn::Conv2d(torch::nn::Conv2dOptions(in, out, 1)))) {}
  at::Tensor forward(const at::Tensor& x) { return at::relu(skip(x) + inner->forward(x)); }
};
struct serial_resnet : torch::nn::Module {
  std::shared_ptr<serial_residual> first = register_module("first", std::make_shared<serial_residual>(2, 4));
  std::shared_ptr<serial_residual> second = register_module("second", std::make_shared<serial_residual>(4, 6));
  torch::nn::Linear head = register_module("head", torch::nn::Linear(6, 3));

  at::Tensor forward(at::Tensor x) {
    x = first->forward(x);
    x = second->forward(at::max_pool2d(x, 2));
    return head(at::adaptive_avg_pool2d(x, {1, 1}).flatten(1));
  }
};
// [end]

struct batch : ts::dyn {};

// [residual]
struct row : ts::axis<2> {};
struct col : ts::axis<2> {};
using grid = ts::mesh<row, col>;
using pixels = ts::partition<grid, ts::whole, ts::whole, ts::blocks<row>, ts::blocks<col>>;
template <class Partition>
using images = ts::tensor<Partition, ts::shape<batch, ts::dim<2>, ts::dim<10>, ts::dim<14>>, double>;

template <ts::index_t Out>
using three = nn::conv<Out, ts::kernel<3, 3>, ts::padding<1, 1>, ts::no_bias>;
template <ts::index_t Out>
struct residual {
  constexpr auto operator()(auto x) const {
    const auto y =
        x | nn::named<struct inner, nn::chain<three<Out>, nn::batch_norm<>, nn::relu, three<Out>, nn::batch_norm<>>>{};
    return relu((x | nn::named<struct skip, nn::conv<Out, ts::kernel<1, 1>>>{}) + y);
  }
};
struct resnet {
  constexpr auto operator()(auto x) const {
    const auto wide = x | nn::named<struct first, residual<4>>{};
    const auto deep = wide | nn::max_pool<ts::kernel<2, 2>>{} | nn::named<struct second, residual<6>>{};
    return deep | nn::global_avg_pool{} | nn::flatten{} | nn::named<struct head, nn::linear<3>>{};
  }
};
static_assert(ts::traffic<nn::network<resnet, images<pixels>>>(ts::bind<batch>(3)).forward.bytes == 21'120);
// [end]

// [unet.serial]
struct serial_unet : torch::nn::Module {
  std::shared_ptr<serial_residual> encoder = register_module("encoder", std::make_shared<serial_residual>(2, 9));
  std::shared_ptr<serial_residual> middle = register_module("middle", std::make_shared<serial_residual>(9, 18));
  torch::nn::Sequential decoder = register_module(
      "decoder", torch::nn::Sequential(three_by_three(27, 9), torch::nn::BatchNorm2d(9), torch::nn::ReLU()));
  torch::nn::Conv2d head = register_module("head", torch::nn::Conv2d(torch::nn::Conv2dOptions(9, 3, 1)));

  at::Tensor forward(const at::Tensor& x) {
    const at::Tensor wide = encoder->forward(x);
    at::Tensor deep = middle->forward(at::max_pool2d(wide, 2));
    deep = at::upsample_nearest2d(deep, {x.size(2), x.size(3)});
    return head(decoder->forward(at::cat({wide, deep}, 1)));
  }
};
// [end]

// [unet]
struct unet {
  constexpr auto operator()(auto x) const {
    const auto wide = x | nn::named<struct encoder, residual<9>>{};
    const auto deep = wide | nn::max_pool<ts::kernel<2, 2>>{} | nn::named<struct middle, residual<18>>{} |
                      nn::upsample<ts::factor<2, 2>>{};
    return ts::concat<1>(wide, deep) | nn::named<struct decoder, nn::chain<three<9>, nn::batch_norm<>, nn::relu>>{} |
           nn::named<struct head, nn::conv<3, ts::kernel<1, 1>>>{};
  }
};
static_assert(ts::traffic<nn::network<unet, images<pixels>>>(ts::bind<batch>(3)).forward.bytes == 88'248);
// [end]

// Images N C H W, and the classes of their pixels N H W.
template <ts::PartitionType Images, ts::PartitionType Classes, ts::index_t Height, ts::index_t Width>
struct cut {
  using input = ts::tensor<Images, ts::shape<batch, ts::dim<2>, ts::dim<Height>, ts::dim<Width>>, double>;
  using labels = ts::tensor<Classes, ts::shape<batch, ts::dim<Height>, ts::dim<Width>>, std::int64_t>;

  static at::Tensor images(int step) {
    return at::sin(at::arange(3 * 2 * Height * Width, at::kDouble) * (0.7 + step)).view({3, 2, Height, Width});
  }
  // of three: 3 is unknown
  static at::Tensor classes() {
    return at::arange(3 * Height * Width, at::kLong).remainder(4).view({3, Height, Width});
  }
};
struct band : ts::axis<4> {};
using line = ts::mesh<band>;
constexpr ts::index_t image_side = 34;  // 17 rows of a worker are pooled to 9 and 8
using space = cut<pixels, ts::partition<grid, ts::whole, ts::blocks<row>, ts::blocks<col>>, image_side, image_side>;
using data_and_space = cut<ts::partition<grid, ts::blocks<row>, ts::whole, ts::whole, ts::blocks<col>>,
                           ts::partition<grid, ts::blocks<row>, ts::whole, ts::blocks<col>>, 10, 14>;
using channels_and_space = cut<ts::partition<grid, ts::whole, ts::blocks<row>, ts::whole, ts::blocks<col>>,
                               ts::partition<grid, ts::whole, ts::whole, ts::blocks<col>>, 10, 6>;
using channels = cut<ts::partition<grid, ts::whole, ts::blocks<row, col>, ts::whole, ts::whole>,
                     ts::partition<grid, ts::whole, ts::whole, ts::whole>, 6, 10>;
using bands = cut<ts::partition<line, ts::whole, ts::whole, ts::blocks<band>, ts::whole>,
                  ts::partition<line, ts::whole, ts::blocks<band>, ts::whole>, 6, 14>;

template <class Cut, class Team>
struct loss_per_pixel {
  const Team& team;
  at::Tensor classes = Cut::classes();

  auto ours(const auto& y) const {
    using labels = typename Cut::labels;
    // [loss]
    const auto known = ts::distribute<labels>(team, classes);  // [n, h, w], cut as the images are
    const auto loss = nn::cross_entropy(y, known, {.weight = {1, 2, 0.5}, .ignore_index = 3});
    // [end]
    return loss;
  }
  at::Tensor theirs(const at::Tensor& z) const {
    return at::cross_entropy_loss(z, classes, at::tensor({1.0, 2.0, 0.5}), at::Reduction::Mean, 3);
  }
};

const torch::optim::SGDOptions with_momentum = torch::optim::SGDOptions(0.05).momentum(0.9);

template <class Cut, class Team>
double unet_apart(const Team& team) {
  serial_unet serial;
  return apart_in_five_steps<nn::network<unet, typename Cut::input>>(team, serial, with_momentum, Cut::images,
                                                                     loss_per_pixel<Cut, Team>{team});
}

double worst_apart(const ts::team<grid>& team) {
  serial_resnet serial;
  return std::max({unet_apart<space>(team), unet_apart<data_and_space>(team), unet_apart<channels_and_space>(team),
                   unet_apart<channels>(team), unet_apart<bands>(team.over<line>()),
                   apart_in_five_steps<nn::network<resnet, space::input>>(team, serial, with_momentum, space::images)});
}

using segmenter = nn::network<unet, space::input>;

struct task {
  scenes::labelled train, test;
  int steps = 160;
  std::int64_t rows = 16;  ///< scenes of a step
  double learning_rate = 0.2;
  std::uint64_t seed = 7;
  std::string figure;
  bool serial = true;
};

constexpr std::size_t compared = 12;  ///< steps whose losses are held against the serial run: rounding grows with them
constexpr int judged = 20;            ///< steps between tests

struct history {
  std::vector<double> losses, overlaps;
  at::Tensor read;  ///< in the test scenes, at last
};

/// Trains a network by its loss of a batch, at a rate that falls as half a cosine. `scores` gives the scores of classes
/// with the statistics of training.
template <class Loss, class Scores>
history train(const task& job, const std::vector<at::Tensor>& parameters, ts::nn::progress_line* bar,
              const Loss& loss_of, const Scores& scores) {
  torch::optim::SGD optimizer(parameters, torch::optim::SGDOptions(job.learning_rate).momentum(0.9));
  const auto all = job.train.images.size(0), each = all / job.rows;
  history h;
  const auto judge = [&] {
    const at::NoGradGuard no_gradients;
    h.read = scores(job.test.images).argmax(1);
    h.overlaps.push_back(scenes::overlap(h.read, job.test.classes));
  };
  judge();
  for (int step = 0; step < job.steps; ++step) {
    const auto order = digits::order(job.seed, static_cast<int>(step / each) + 1, all);
    const at::Tensor chosen = at::tensor(order, at::kLong).narrow(0, step % each * job.rows, job.rows);
    const double rate = job.learning_rate * (1 + std::cos(std::numbers::pi * step / job.steps)) / 2;
    static_cast<torch::optim::SGDOptions&>(optimizer.param_groups()[0].options()).lr(rate);
    optimizer.zero_grad();
    h.losses.push_back(loss_of(job.train.images.index_select(0, chosen), job.train.classes.index_select(0, chosen)));
    optimizer.step();
    if ((step + 1) % judged == 0 || step + 1 == job.steps) judge();
    if (bar != nullptr)
      bar->update(step + 1, fmt::format("loss {:.3f}  overlap {:.1f} %", h.losses.back(), 100 * h.overlaps.back()));
  }
  return h;
}

history train_serial(const task& job, const nn::state_dict& initial) {
  serial_unet serial;
  assign(serial, initial);
  ts::nn::progress_line bar("serial step", job.steps);
  const auto loss_of = [&](const at::Tensor& x, const at::Tensor& classes) {
    const at::Tensor loss = at::cross_entropy_loss(serial.forward(x), classes);
    loss.backward();
    return loss.item<double>();
  };
  return train(job, serial.parameters(), &bar, loss_of, [&](const at::Tensor& x) {
    serial.eval();
    const at::Tensor y = serial.forward(x);
    serial.train();
    return y;
  });
}

int run(int argc, char** argv, const ts::launch_options& options, const task& job) {
  return ts::launch<grid>(argc, argv, options, [&](ts::team<grid>& team) {
    const bool speaks = team.first();
    const double far = worst_apart(team);
    if (!(far <= 1e-12))
      throw std::runtime_error(fmt::format("[unet.serial.differs] a network differs from one process by {}", far));
    segmenter net{team, ts::seed{job.seed}};
    const nn::state_dict initial = nn::state_of(net);
    std::optional<ts::nn::progress_line> bar;
    if (speaks) {
      fmt::print(
          "five steps of a U-Net, cut in five ways, and of a residual network differ from one process by {:.2e}\n",
          far);
      const auto moved = ts::traffic<segmenter>(ts::bind<batch>(job.rows));
      fmt::print("{} workers, {} scenes of {} x {} to learn from; forward moves {} bytes in {} messages\n", team.size(),
                 job.train.images.size(0), image_side, image_side, moved.forward.bytes, moved.forward.messages);
      bar.emplace("step", job.steps);
    }
    const auto loss_of = [&](const at::Tensor& x, const at::Tensor& classes) {
      const auto loss =
          nn::cross_entropy(net(ts::distribute<space::input>(team, x)), ts::distribute<space::labels>(team, classes));
      loss.backward();
      return ts::item(loss);
    };
    const history h = train(job, net.parameters(), bar ? &*bar : nullptr, loss_of, [&](const at::Tensor& x) {
      net.eval();
      const at::Tensor y = ts::full_tensor(net(ts::distribute<space::input>(team, x)));
      net.train();
      return y;
    });
    bar.reset();
    if (!speaks) return;
    fmt::print("overlap with discs and rings: {:.2f} %, untrained {:.0f} %\n", 100 * h.overlaps.back(),
               100 * h.overlaps.front());
    if (!job.figure.empty()) {
      scenes::write_figure(job.figure, job.test, h.read,
                           "Discs and rings read by a U-Net, 2 x 2 workers cut height and width");
      fmt::print("picture: {}\n", job.figure);
    }
    if (!job.serial) return;
    std::fflush(stdout);
    const history serial = train_serial(job, initial);
    double worst = 0;
    for (std::size_t i = 0; i < std::min(compared, h.losses.size()); ++i)
      worst = std::max(worst, std::abs(h.losses[i] - serial.losses[i]));
    fmt::print("serial overlap: {:.2f} %\nlargest difference from serial: {:.3g}\n", 100 * serial.overlaps.back(),
               worst);
    std::fflush(stdout);
    if (!(worst <= 1e-9)) throw std::runtime_error("[unet.serial.differs] the network differs from one process");
  });
}

int main(int argc, char** argv) {
  CLI::App app{
      "Trains a U-Net that finds discs and rings in noisy images over four workers, which cut height and width.\n"
      "Without a launcher the workers are threads; under mpirun -np 4 each is a process."};
  task job;
  ts::launch_options options;
  std::int64_t samples = 256;
  bool alone = false;
  app.add_option("--steps", job.steps, "steps of training")->check(CLI::Range(1, 100'000))->capture_default_str();
  app.add_option("--samples", samples, "scenes to learn from")->check(CLI::Range(16, 100'000))->capture_default_str();
  app.add_option("--learning-rate", job.learning_rate, "first step of the optimizer")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--seed", job.seed, "of initial weights, scenes and shuffling")->capture_default_str();
  app.add_option("--figure", job.figure, "where scenes and what was read in them go, as SVG")->default_val("unet.svg");
  app.add_option("--transport", options.transport, "auto, in-process, mpi or tcp")
      ->transform(CLI::CheckedTransformer(ts::transport_names))
      ->default_str("auto");
  app.add_flag("--no-serial", alone, "do not train the serial network for comparison");
  app.add_flag("--checked", options.checked, "compare what the workers do at every operation");
  CLI11_PARSE(app, argc, argv);
  job.serial = !alone;
  try {
    job.train = scenes::drawn(samples, image_side, job.seed);
    job.test = scenes::drawn(64, image_side, ~job.seed);
    return run(argc, argv, options, job);
  } catch (const std::exception& e) {
    fmt::print(stderr, "unet: {}\n", e.what());
    return 1;
  }
}
