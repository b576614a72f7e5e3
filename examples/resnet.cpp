// Trains a residual network on handwritten digits over workers that cut height and channels, and the same network
// serially beside it.
#include "digits/steps.hpp"

#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>

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

}  // namespace

int main(int argc, char** argv) {
  return digits::by_steps::main_of(
      argc, argv,
      "Trains a residual network with batch norms on 1,797 handwritten digits over four workers, which cut height and "
      "channels.",
      {.name = "resnet",
       .title = "A residual network on digits, 2 x 2 workers cut height and channels",
       .axes = "height x channels",
       .mesh = "2x2"},
      {{"2x2", digits::by_steps::run<network, labels, serial_network>}});
}
