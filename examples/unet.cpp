// A residual network and a U-Net with batch norms and a loss per pixel, trained against one process on images cut in several ways.
#include <tessera/tessera.hpp>

#include <torch/optim/sgd.h>
namespace ts = tessera;
namespace nn = tessera::nn;

struct row : ts::axis<2> {};
struct col : ts::axis<2> {};
struct band : ts::axis<4> {};
using grid = ts::mesh<row, col>;
using line = ts::mesh<band>;
struct batch : ts::dyn {};

// Images N C H W, and the classes of their pixels N H W.
template <ts::PartitionType Images, ts::PartitionType Classes>
struct cut {
  using images = Images;
  using classes = Classes;
};
using space = cut<ts::partition<grid, ts::whole, ts::whole, ts::blocks<row>, ts::blocks<col>>, ts::partition<grid, ts::whole, ts::blocks<row>, ts::blocks<col>>>;
using data_and_space = cut<ts::partition<grid, ts::blocks<row>, ts::whole, ts::whole, ts::blocks<col>>, ts::partition<grid, ts::blocks<row>, ts::whole, ts::blocks<col>>>;
using channels_and_space = cut<ts::partition<grid, ts::whole, ts::blocks<row>, ts::whole, ts::blocks<col>>, ts::partition<grid, ts::whole, ts::whole, ts::blocks<col>>>;
using channels = cut<ts::partition<grid, ts::whole, ts::blocks<row, col>, ts::whole, ts::whole>, ts::partition<grid, ts::whole, ts::whole, ts::whole>>;
using bands = cut<ts::partition<line, ts::whole, ts::whole, ts::blocks<band>, ts::whole>, ts::partition<line, ts::whole, ts::blocks<band>, ts::whole>>;
using whole_images = cut<space::images, ts::partition<grid, ts::whole>>;  // a class for each image

// [networks]
using three = ts::kernel<3, 3>;
using same = ts::padding<1, 1>;
using halves = ts::kernel<2, 2>;

template <ts::index_t Out>
struct stage {
  constexpr auto operator()(auto x) const { return x | nn::conv<Out, three, same, ts::no_bias>{} | nn::batch_norm<>{} | nn::relu{}; }
};
template <ts::index_t Out>
struct residual {
  constexpr auto operator()(auto x) const {
    const auto y = x | stage<Out>{} | nn::conv<Out, three, same, ts::no_bias>{} | nn::batch_norm<>{};
    return ts::relu((x | nn::named<struct skip, nn::conv<Out, ts::kernel<1, 1>>>{}) + y);
  }
};
struct unet {
  constexpr auto operator()(auto x) const {
    const auto wide = x | nn::named<struct encoder, residual<4>>{};
    const auto deep = wide | nn::max_pool<halves>{} | nn::named<struct middle, residual<5>>{} | nn::upsample<ts::factor<2, 2>>{};
    return ts::concat<1>(wide, deep) | nn::named<struct decoder, stage<4>>{} | nn::named<struct head, nn::conv<3, ts::kernel<1, 1>>>{};
  }
};
struct resnet {
  constexpr auto operator()(auto x) const {
    const auto features = x | residual<4>{} | nn::max_pool<halves>{} | residual<6>{};
    return ts::mean<2, 3>(features) | nn::repartition<ts::partition<grid, ts::whole, ts::whole>>{} | nn::named<struct head, nn::linear<3>>{};
  }
};
// [end]

/// The same in one process.
struct serial {
  std::map<std::string, at::Tensor> w;

  at::Tensor conv(const at::Tensor& x, const std::string& key, ts::index_t pad) {
    const bool bias = w.count(key + ".bias") > 0;
    return at::conv2d(x, w.at(key + ".weight"), bias ? w.at(key + ".bias") : at::Tensor(), at::IntArrayRef({1, 1}), at::IntArrayRef({pad, pad}));
  }
  at::Tensor norm(const at::Tensor& x, const std::string& key) {
    return at::batch_norm(x, w.at(key + ".weight"), w.at(key + ".bias"), w.at(key + ".running_mean"), w.at(key + ".running_var"), true, 0.1, 1e-5, false);
  }
  at::Tensor stage(const at::Tensor& x, const std::string& key) { return at::relu(norm(conv(x, key + ".0", 1), key + ".1")); }
  at::Tensor residual(const at::Tensor& x, const std::string& key) {
    return at::relu(conv(x, key + ".skip", 0) + norm(conv(stage(x, key + ".0"), key + ".1", 1), key + ".2"));
  }
  at::Tensor operator()(const unet&, const at::Tensor& x) {
    const at::Tensor wide = residual(x, "encoder");
    const at::Tensor deep = at::upsample_nearest2d(residual(at::max_pool2d(wide, {2, 2}), "middle"), {x.size(2), x.size(3)});
    return conv(stage(at::cat({wide, deep}, 1), "decoder"), "head", 0);
  }
  at::Tensor operator()(const resnet&, const at::Tensor& x) {
    const at::Tensor features = residual(at::max_pool2d(residual(x, "0"), {2, 2}), "2");
    return at::linear(features.mean({2, 3}), w.at("head.weight"), w.at("head.bias"));
  }
};

/// How far five steps of a network are from the same in one process: outputs, gradients, weights, running statistics. Loss counts each pixel
/// (or image) whose class is known.
template <class Module, class Cut, ts::index_t Height, ts::index_t Width>
double distance(const ts::team<typename Cut::images::mesh_type>& team) {
  constexpr bool pixelwise = std::is_same_v<Module, unet>;
  using input = ts::tensor<typename Cut::images, ts::shape<batch, ts::dim<2>, ts::dim<Height>, ts::dim<Width>>, double>;
  using extents = std::conditional_t<pixelwise, ts::shape<batch, ts::dim<Height>, ts::dim<Width>>, ts::shape<batch>>;
  using labels = ts::tensor<typename Cut::classes, extents, std::int64_t>;
  using net_type = nn::network<Module, input>;
  net_type net{team, ts::seed{7}};
  serial other{nn::state_of(net)};
  std::vector<at::Tensor> leaves;
  net.each_parameter([&](const nn::parameter& p) { leaves.push_back(other.w.at(p.path()).requires_grad_(true)); });
  const torch::optim::SGDOptions options = torch::optim::SGDOptions(0.05).momentum(0.9);
  torch::optim::SGD ours(net.parameters(), options);
  torch::optim::SGD theirs(leaves, options);
  double worst = 0;
  const auto judge = [&](const at::Tensor& a, const at::Tensor& b) { worst = std::max(worst, (a - b).abs().max().item<double>()); };
  for (int step = 0; step < 5; ++step) {
    const at::Tensor images = at::sin(at::arange(3 * 2 * Height * Width, at::kDouble) * (0.7 + step)).view({3, 2, Height, Width}).requires_grad_(true);
    const at::Tensor each = at::arange(pixelwise ? 3 * Height * Width : 3, at::kLong).remainder(4);  // of three classes: 3 is unknown
    const at::Tensor classes = pixelwise ? each.view({3, Height, Width}) : each;
    auto x = ts::take<input>(team, images.detach());
    x.requires_grad();
    ours.zero_grad();
    theirs.zero_grad();
    // [loss]
    const auto y = net(x);                                         // [n, 3, h, w]
    const auto known = ts::take<labels>(team, classes);            // [n, h, w], cut as the images are
    const auto loss = nn::cross_entropy(y, known, {.weight = {1, 2, 0.5}, .ignore_index = 3});
    // [end]
    loss.backward();
    const at::Tensor z = other(Module{}, images);
    at::cross_entropy_loss(z, classes, at::tensor({1.0, 2.0, 0.5}), at::Reduction::Mean, 3).backward();
    judge(ts::global(y), z.detach());
    judge(ts::global(x.grad()), images.grad());
    std::size_t i = 0;
    net.each_parameter([&](const nn::parameter& p) {
      judge(ts::global(ts::tensor<ts::dyn>(p.stored().team(), ts::cotangent(p.stored().layout()), p.stored().local().grad())), leaves[i++].grad());
    });
    ours.step();
    theirs.step();
  }
  for (auto& [key, value] : nn::state_of(net))
    if (key.find("num_batches") == std::string::npos) judge(value, other.w.at(key).detach());
  return worst;
}

int main(int argc, char** argv) {
  return ts::launch<grid>(argc, argv, [](ts::team<grid>& team) {
    const double far = std::max({distance<unet, space, 10, 14>(team), distance<unet, data_and_space, 10, 14>(team), distance<unet, channels_and_space, 10, 6>(team),
                                 distance<unet, channels, 6, 10>(team), distance<unet, bands, 6, 14>(team.over<line>()), distance<resnet, whole_images, 10, 14>(team)});
    if (far > 1e-12) throw std::runtime_error(fmt::format("a network differs from one process by {}", far));
    if (team.first()) fmt::print("a U-Net and a residual network agree with one process\nlargest difference from serial: {:.2e}\n", far);
  });
}
