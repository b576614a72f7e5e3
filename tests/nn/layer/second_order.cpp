#include "tests/support/layers.hpp"

#include <torch/csrc/autograd/autograd.h>

namespace tessera::testing::second_order {

using namespace engine;

namespace {

struct up : axis<2> {};
struct across : axis<2> {};
using grid = mesh<up, across>;
using by_feature = partition<grid, whole, blocks<up, across>>;
using by_pixel = partition<grid, whole, whole, blocks<up>, blocks<across>>;

/// The local part of S = Σ y³ and its gradient of x, which can be differentiated again when `again`.
template <class Net>
std::pair<at::Tensor, at::Tensor> slope(const Net& net, const typename Net::input& x, bool again) {
  const auto cubes = map_elements(net(x), [](const at::Tensor& y) { return y * y * y; });
  const at::Tensor s = tessera::sum(cubes).local();
  return {s, torch::autograd::grad({s}, {x.local()}, {at::ones_like(s)}, again, again)[0]};
}

/// How far ∇|∇S|² along a direction is from the central difference of |∇S|², relative to it.
template <class Net>
double curvature_is_off(const std::vector<index_t>& sizes, double edges_apart) {
  const at::Tensor here = global_of(sizes, numbers{3});
  const at::Tensor along = global_of(sizes, numbers{4});
  const auto run = in_team<grid>([&](team<grid>& t) {
    set_edges_apart(t.state()->carrier(), edges_apart);
    const Net net{t, seed{3}};
    const auto at = [&](double step) {
      auto x = distribute<typename Net::input>(t, here + step * along);
      x.requires_grad();
      return x;
    };
    const auto square = [&](double step) {
      const auto x = at(step);
      const at::Tensor g = slope(net, x, false).second;
      const tensor<dyn> gradient(x.team(), cotangent(x.layout()), g);
      return tessera::full_tensor(gradient).square().sum().template item<double>();
    };
    const auto x = at(0);
    slope(net, x, true).second.square().sum().backward();
    const double got = (tessera::full_tensor(x.grad()) * along).sum().template item<double>();
    const double wanted = (square(1e-4) - square(-1e-4)) / 2e-4;
    return std::abs(got - wanted) / std::abs(wanted);
  });
  return run.well() ? *run.results[0] : -1;
}

template <class Net>
bool bends(const std::vector<index_t>& sizes, double edges_apart = 0) {
  const double off = curvature_is_off<Net>(sizes, edges_apart);
  UNSCOPED_INFO("off by " << off);
  return off >= 0 && off < 1e-5;
}

}  // namespace

TEST_CASE("a gradient's gradient passes layers, also where workers have no part of the input or the result",
          "[gradient]") {
  using nn::sequential;
  using features = tensor<by_feature, shape_of<5, 8>, double>;
  CHECK(bends<sequential<features, nn::linear<4>>>({5, 8}));
  CHECK(bends<sequential<features, nn::linear<3>>>({5, 8}));
  CHECK(bends<sequential<features, nn::linear<3, cut_out<up, across>>, nn::linear<2, cut_out<up, across>>>>({5, 8}));
  CHECK(bends<sequential<tensor<by_feature, shape_of<5, 3>, double>, nn::linear<8, cut_in<up, across>>>>({5, 3}));
  // no expert on two
  using slots = tensor<partition<grid, blocks<up>, whole, blocks<across>>, shape_of<1, 3, 5>, double>;
  // no result on two of the others
  CHECK(bends<sequential<slots, nn::experts<1, 4>, nn::experts<1, 1, cut_out<across>>>>({1, 3, 5}));
  using pixels = tensor<by_pixel, shape_of<2, 2, 7, 5>, double>;
  using padded = nn::conv<3, kernel<3, 3>, padding<1>>;
  CHECK(bends<sequential<pixels, padded, nn::conv<2, kernel<3, 3>>>>({2, 2, 7, 5}));
  // edges by themselves
  CHECK(bends<sequential<pixels, padded, nn::avg_pool<kernel<3, 3>, stride<1, 1>, padding<1, 1>>>>({2, 2, 7, 5}, 8));
  // parts of a group on two workers each
  CHECK(bends<sequential<tensor<by_feature, shape_of<4, 6>, double>, nn::group_norm<2>>>({4, 6}));
  CHECK(bends<sequential<pixels, nn::group_norm<1>, nn::instance_norm<affine>>>({2, 2, 7, 5}));
  // the halo of two features
  using grown = nn::conv_transpose<3, kernel<3, 4>, stride<2>, padding<1>, output_padding<1, 0>>;
  using spread = nn::conv_transpose<1, kernel<3, 4>, stride<2>, padding<1>>;  // terms of one
  CHECK(bends<sequential<pixels, grown, nn::conv<2, kernel<4, 3>, padding_same>>>({2, 2, 7, 5}));
  CHECK(bends<sequential<pixels, spread>>({2, 2, 7, 5}));
  // no input on two
  CHECK(bends<sequential<tensor<by_pixel, shape_of<2, 2, 7, 1>, double>, spread>>({2, 2, 7, 1}));
  CHECK(bends<sequential<pixels, nn::max_pool<kernel<2, 2>, ceil_mode>>>({2, 2, 7, 5}));
  CHECK(bends<sequential<pixels, nn::prelu<channelwise>, nn::conv<2, kernel<3, 3>>, nn::prelu<>>>({2, 2, 7, 5}));
  CHECK(bends<
        sequential<tensor<by_pixel, shape_of<2, 4, 7, 5>, double>, nn::pixel_shuffle<2>, nn::conv<1, kernel<3, 3>>>>(
      {2, 4, 7, 5}));
  CHECK(bends<
        sequential<tensor<by_pixel, shape_of<2, 1, 6, 10>, double>, nn::pixel_unshuffle<2>, nn::conv<3, kernel<2, 2>>>>(
      {2, 1, 6, 10}));
  CHECK(bends<sequential<pixels, nn::unfold<kernel<3, 2>, padding<1, 0>>, nn::fold<kernel<3, 2>, padding<1, 0>>>>(
      {2, 2, 7, 5}));
  CHECK(bends<sequential<pixels, nn::upsample<factor<3, 5>, divisor<2>, mode<interpolation::cubic>>>>({2, 2, 7, 5}));
  // no input on two
  CHECK(bends<sequential<tensor<by_pixel, shape_of<2, 2, 7, 1>, double>, padded>>({2, 2, 7, 1}));
  // no result
  CHECK(bends<sequential<tensor<by_pixel, shape_of<2, 2, 7, 3>, double>, nn::conv<3, kernel<3, 3>>>>({2, 2, 7, 3}));
  CHECK(bends<sequential<tensor<by_pixel, shape_of<2, 2, 7, 2>, double>, nn::avg_pool<kernel<2, 2>>>>({2, 2, 7, 2}));
}

namespace {

struct heads_over : axis<3> {};
using three_workers = mesh<heads_over>;
using sequence =
    tensor<partition<three_workers, whole, whole, whole, invariant<heads_over>>, shape_of<2, 5, 6>, double>;
template <class... Options>
struct attending_block {
  constexpr auto operator()(auto x) const {
    // two heads over three workers
    const auto [q, k, v] = x | nn::named<struct qkv, nn::heads<2, 2, 3, cut_out<heads_over>>>{};
    return nn::attention<Options...>{}(q, k, v) | nn::named<struct mixed, nn::linear<6, cut_in<heads_over>>>{};
  }
};

/// Serially, of weights as the state dict has them.
at::Tensor serial_block(const at::Tensor& x, const nn::state_dict& w, bool causal) {
  const auto parts = at::linear(x, w.at("qkv.weight"), w.at("qkv.bias")).chunk(3, -1);
  const auto by_head = [](const at::Tensor& p) { return p.unflatten(-1, {2, 3}).transpose(1, 2); };
  at::Tensor scores = at::matmul(by_head(parts[0]), by_head(parts[1]).transpose(-2, -1)) / std::sqrt(3.0);
  if (causal)
    scores = scores.masked_fill(at::ones({5, 5}, at::kBool).triu(1), -std::numeric_limits<double>::infinity());
  const at::Tensor y = at::matmul(at::softmax(scores, -1), by_head(parts[2])).transpose(1, 2).flatten(2);
  return at::linear(y, w.at("mixed.weight"), w.at("mixed.bias"));
}

template <class... Options>
std::string attention_bends(bool causal) {
  const at::Tensor numbers_of_x = global_of({2, 5, 6}, numbers{7});
  const auto run = in_team<three_workers>([&](const team<three_workers>& t) -> std::string {
    nn::network<attending_block<Options...>, sequence> net{t, seed{1}};
    auto x = distribute<sequence>(t, numbers_of_x);
    x.requires_grad();
    const auto y = net(x);
    tessera::sum(y * y).backward(true, true);
    const at::Tensor first = x.grad().local();
    const at::Tensor second = torch::autograd::grad({first.square().sum()}, {x.local()})[0];
    nn::state_dict w = nn::state_of(net);
    const at::Tensor leaf = numbers_of_x.clone().set_requires_grad(true);
    const at::Tensor wanted =
        torch::autograd::grad({serial_block(leaf, w, causal).square().sum()}, {leaf}, {}, true, true)[0];
    const at::Tensor bent = torch::autograd::grad({wanted.square().sum()}, {leaf})[0];
    if (!at::allclose(first.detach(), wanted.detach(), 1e-10, 1e-12)) return "first";
    return at::allclose(second, bent, 1e-9, 1e-11) ? "" : "second";
  });
  for (const auto& r : run.results)
    if (!r || !r->empty()) return run.well() ? *r : run.errors();
  return "";
}

}  // namespace

TEST_CASE("attention has a second derivative, on workers with and without heads", "[gradient]") {
  CHECK(attention_bends<>(false) == "");
  CHECK(attention_bends<causal>(true) == "");
}

}  // namespace tessera::testing::second_order
