// Modules: networks that are no line, held against one process.
#include <tessera/nn/file/network_file.hpp>
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
  constexpr auto operator()(auto x) const {
    return x | ts::nn::conv<Out, ts::kernel<3, 3>, ts::padding<1, 1>>{} | ts::nn::relu{};
  }
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
// three halos, each worker from its three neighbours
static_assert(ts::traffic<net_type>(ts::bind<batch>(2)).forward.messages == 36);

// [file]
constexpr const char* from_a_file = R"({
  "inputs": [{"name": "image", "shape": ["batch", 3, 9, 7], "element": "double",
              "dims": [{"whole": true}, {"whole": true}, {"blocks": ["row"]}, {"blocks": ["col"]}]}],
  "nodes": [{"name": "a", "of": "image", "layer": "conv", "out_channels": 16, "kernel_size": [3, 3], "padding": 1,
   "path": "body.0"},
            {"name": "b", "of": "a", "layer": "relu"},
            {"name": "mask", "of": "b", "layer": "conv", "out_channels": 1, "kernel_size": [1, 1]}],
  "outputs": ["mask", "b"]})";
// [end]

int main(int argc, char** argv) {
  return ts::launch<grid>(argc, argv, [](ts::team<grid>& team) {
    const at::Tensor images = at::sin(at::arange(2 * 3 * 9 * 7, at::kDouble)).view({2, 3, 9, 7});
    const auto x = ts::distribute<image>(team, images);
    // [call]
    net_type net{team, ts::seed{7}};
    auto [mask, features] = net(x);
    // [end]
    // [built]
    ts::nn::program p;
    const auto stage_of = [](ts::index_t out) {
      return [out](const auto& y) {
        return y | ts::nn::conv_layer{.out = out, .kernel = {3, 3}, .padding = {1}} | ts::nn::relu{};
      };
    };
    const auto in = p.input<image>();  // or of a tensor_value
    const auto body = in | ts::nn::under("body", stage_of(16)) | stage_of(8);
    p.output(body | ts::nn::conv_layer{.out = 1, .kernel = {1, 1}});
    p.output(body | stage_of(4));

    ts::nn::dynamic_network built{team, ts::seed{7}, p};
    const std::vector<ts::tensor<ts::dyn>> outputs = built({x.dynamic()});
    // [end]
    // [shared]
    // the weights of net, under their keys: body.0.weight
    const ts::nn::network<stage<16>, image> body_alone{net.at("body")};
    const auto seen = body_alone(x);
    // [end]
    if (body_alone.parameters()[0].data_ptr() != net.parameters()[0].data_ptr() || seen.local().size(1) != 16)
      throw std::runtime_error("a part has weights of its own");
    if (!at::equal(outputs[0].local(), mask.local()) || !at::equal(outputs[1].local(), features.local()))
      throw std::runtime_error("the network that was put together while it ran differs");
    ts::nn::program q;
    // [read]
    ts::nn::read_network(q, from_a_file, team.mesh(), "net.json");  // or load_network(q, path, mesh)
    // [end]
    if (ts::nn::dynamic_network{team, ts::seed{7}, q}({x.dynamic()}).size() != 2)
      throw std::runtime_error("a file says another network");
    auto w = ts::nn::state_of(net);
    const auto conv = [&](const at::Tensor& at_hand, const std::string& key, ts::index_t pad) {
      return at::conv2d(at_hand, w.at(key + ".weight"), w.at(key + ".bias"), at::IntArrayRef({1, 1}),
                        at::IntArrayRef({pad, pad}));
    };
    const at::Tensor through = at::relu(conv(at::relu(conv(images, "body.0", 1)), "0.0", 1));
    if (!at::allclose(ts::full_tensor(mask), conv(through, "1", 0)) ||
        !at::allclose(ts::full_tensor(features), at::relu(conv(through, "2.0", 1))))
      throw std::runtime_error("the network differs from one process");
    if (team.first()) fmt::print("a body and two heads agree with one process\n");
  });
}
