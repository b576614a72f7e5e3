// A residual network and a U-Net with batch norms and a loss per pixel, trained against one process on images that are cut in several ways.
#include <tessera/tessera.hpp>

#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>

#include "beside_serial.hpp"
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
      : inner(register_module("inner", torch::nn::Sequential(three_by_three(in, out), torch::nn::BatchNorm2d(out), torch::nn::ReLU(),
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
    const auto y = x | nn::named<struct inner, nn::chain<three<Out>, nn::batch_norm<>, nn::relu, three<Out>, nn::batch_norm<>>>{};
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
  std::shared_ptr<serial_residual> encoder = register_module("encoder", std::make_shared<serial_residual>(2, 4));
  std::shared_ptr<serial_residual> middle = register_module("middle", std::make_shared<serial_residual>(4, 5));
  torch::nn::Sequential decoder =
      register_module("decoder", torch::nn::Sequential(three_by_three(9, 4), torch::nn::BatchNorm2d(4), torch::nn::ReLU()));
  torch::nn::Conv2d head = register_module("head", torch::nn::Conv2d(torch::nn::Conv2dOptions(4, 3, 1)));

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
    const auto wide = x | nn::named<struct encoder, residual<4>>{};
    const auto deep = wide | nn::max_pool<ts::kernel<2, 2>>{} | nn::named<struct middle, residual<5>>{} | nn::upsample<ts::factor<2, 2>>{};
    return ts::concat<1>(wide, deep) | nn::named<struct decoder, nn::chain<three<4>, nn::batch_norm<>, nn::relu>>{} |
           nn::named<struct head, nn::conv<3, ts::kernel<1, 1>>>{};
  }
};
static_assert(ts::traffic<nn::network<unet, images<pixels>>>(ts::bind<batch>(3)).forward.bytes == 32'760);
// [end]

// Images N C H W, and the classes of their pixels N H W.
template <ts::PartitionType Images, ts::PartitionType Classes, ts::index_t Height, ts::index_t Width>
struct cut {
  using input = ts::tensor<Images, ts::shape<batch, ts::dim<2>, ts::dim<Height>, ts::dim<Width>>, double>;
  using labels = ts::tensor<Classes, ts::shape<batch, ts::dim<Height>, ts::dim<Width>>, std::int64_t>;

  static at::Tensor images(int step) { return at::sin(at::arange(3 * 2 * Height * Width, at::kDouble) * (0.7 + step)).view({3, 2, Height, Width}); }
  static at::Tensor classes() { return at::arange(3 * Height * Width, at::kLong).remainder(4).view({3, Height, Width}); }  // of three: 3 is unknown
};
struct band : ts::axis<4> {};
using line = ts::mesh<band>;
using space = cut<pixels, ts::partition<grid, ts::whole, ts::blocks<row>, ts::blocks<col>>, 10, 14>;
using data_and_space = cut<ts::partition<grid, ts::blocks<row>, ts::whole, ts::whole, ts::blocks<col>>,
                           ts::partition<grid, ts::blocks<row>, ts::whole, ts::blocks<col>>, 10, 14>;
using channels_and_space = cut<ts::partition<grid, ts::whole, ts::blocks<row>, ts::whole, ts::blocks<col>>,
                               ts::partition<grid, ts::whole, ts::whole, ts::blocks<col>>, 10, 6>;
using channels = cut<ts::partition<grid, ts::whole, ts::blocks<row, col>, ts::whole, ts::whole>, ts::partition<grid, ts::whole, ts::whole, ts::whole>, 6, 10>;
using bands = cut<ts::partition<line, ts::whole, ts::whole, ts::blocks<band>, ts::whole>, ts::partition<line, ts::whole, ts::blocks<band>, ts::whole>, 6, 14>;

template <class Cut, class Team>
struct loss_per_pixel {
  const Team& team;
  at::Tensor classes = Cut::classes();

  auto ours(const auto& y) const {
    using labels = typename Cut::labels;
    // [loss]
    const auto known = ts::take<labels>(team, classes);  // [n, h, w], cut as the images are
    const auto loss = nn::cross_entropy(y, known, {.weight = {1, 2, 0.5}, .ignore_index = 3});
    // [end]
    return loss;
  }
  at::Tensor theirs(const at::Tensor& z) const { return at::cross_entropy_loss(z, classes, at::tensor({1.0, 2.0, 0.5}), at::Reduction::Mean, 3); }
};

const torch::optim::SGDOptions with_momentum = torch::optim::SGDOptions(0.05).momentum(0.9);

template <class Cut, class Team>
double unet_apart(const Team& team) {
  serial_unet serial;
  return apart_in_five_steps<nn::network<unet, typename Cut::input>>(team, serial, with_momentum, Cut::images, loss_per_pixel<Cut, Team>{team});
}

int main(int argc, char** argv) {
  return ts::launch<grid>(argc, argv, [](ts::team<grid>& team) {
    serial_resnet serial;
    const double far = std::max({unet_apart<space>(team), unet_apart<data_and_space>(team), unet_apart<channels_and_space>(team), unet_apart<channels>(team),
                                 unet_apart<bands>(team.over<line>()),
                                 apart_in_five_steps<nn::network<resnet, space::input>>(team, serial, with_momentum, space::images)});
    if (!(far <= 1e-12)) throw std::runtime_error(fmt::format("a network differs from one process by {}", far));
    if (team.first()) fmt::print("a U-Net and a residual network agree with one process\nlargest difference from serial: {:.2e}\n", far);
  });
}
