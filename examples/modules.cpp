// Modules: networks that are no line, held against one process.
#include <tessera/tessera.hpp>
namespace ts = tessera;

struct row : ts::axis<2> {};
struct col : ts::axis<2> {};
using grid = ts::mesh<row, col>;
struct batch : ts::dyn {};
using image = ts::tensor<ts::partition<grid, ts::whole, ts::whole, ts::blocks<row>, ts::blocks<col>>,
                         ts::shape<batch, ts::dim<3>, ts::dim<9>, ts::dim<7>>, double>;

// [modules]
template <ts::index_t Out>
struct stage {
  constexpr auto operator()(auto x) const { return x | ts::nn::conv<Out, ts::kernel<3, 3>, ts::padding<1, 1>>{} | ts::nn::relu{}; }
};
struct two_heads {
  constexpr auto operator()(auto x) const {
    auto y = x | ts::nn::named<struct body, stage<16>>{} | stage<8>{};
    return ts::flows{y | ts::nn::conv<1, ts::kernel<1, 1>>{}, y | stage<4>{}};
  }
};
using net_type = ts::nn::network<two_heads, image>;
// [end]
static_assert(net_type::program.count == 7);
static_assert(ts::traffic<net_type>(ts::bind<batch>(2)).forward.messages == 36);  // three halos, each worker from its three neighbours

int main(int argc, char** argv) {
  return ts::launch<grid>(argc, argv, [](ts::team<grid>& team) {
    const at::Tensor images = at::sin(at::arange(2 * 3 * 9 * 7, at::kDouble)).view({2, 3, 9, 7});
    const auto x = ts::take<image>(team, images);
    // [call]
    net_type net{team, ts::seed{7}};
    auto [mask, features] = net(x);
    // [end]
    auto w = ts::nn::state_of(net);
    const auto conv = [&](const at::Tensor& in, const std::string& key, ts::index_t pad) {
      return at::conv2d(in, w.at(key + ".weight"), w.at(key + ".bias"), at::IntArrayRef({1, 1}), at::IntArrayRef({pad, pad}));
    };
    const at::Tensor body = at::relu(conv(at::relu(conv(images, "body.0", 1)), "0.0", 1));
    if (!at::allclose(ts::global(mask), conv(body, "1", 0)) || !at::allclose(ts::global(features), at::relu(conv(body, "2.0", 1))))
      throw std::runtime_error("the network differs from one process");
    if (team.first()) fmt::print("a body and two heads agree with one process\n");
  });
}
