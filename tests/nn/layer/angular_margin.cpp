#include <tessera/nn/file/network_file.hpp>

#include "tests/support/tensors.hpp"

#include <numbers>

namespace tessera::testing::of_margins {

using namespace engine;

namespace {

using nn::angular_margin_options;
using nn::reduction;

struct up : axis<2> {};
struct across : axis<3> {};
using grid = mesh<up, across>;
template <index_t Rows, index_t Classes, class E = double>
using cosines = tensor<partition<grid, blocks<up>, blocks<across>>, shape_of<Rows, Classes>, E>;
template <index_t Rows>
using labels = tensor<partition<grid, blocks<up>, invariant<across>>, shape_of<Rows>, std::int64_t>;

const std::vector<angular_margin_options> all_options{{},
                                                      {.margin = 0.25, .scale = 3, .easy = true},
                                                      {.margin = 1.5, .scale = 8},
                                                      {.margin = 0, .scale = 2},
                                                      {.margin = std::numbers::pi, .scale = 1},
                                                      {.margin = 0.5, .scale = 16, .easy = true, .ignore_index = 1}};

/// The same of a whole tensor by what a margin is: an angle, its sum with another, a cosine again.
at::Tensor with_margin(const at::Tensor& x, const at::Tensor& label, const angular_margin_options& how) {
  const at::Tensor one_hot = at::arange(x.size(1), at::kLong).unsqueeze(0) == label.unsqueeze(1);
  const at::Tensor counted = (label != how.ignore_index).unsqueeze(1);
  const at::Tensor angle = at::acos(x);
  const at::Tensor wider = at::cos(angle + how.margin);
  const at::Tensor takes = how.easy ? angle < std::numbers::pi / 2 : angle + how.margin < std::numbers::pi;
  const at::Tensor otherwise = how.easy ? x : x - how.margin * std::sin(how.margin);
  return how.scale * at::where(at::logical_and(one_hot, counted), at::where(takes, wider, otherwise), x);
}

/// A loss of y that its second derivatives are of, too.
at::Tensor bent(const at::Tensor& y) { return (y / 8).sin().sum(); }

/// y, ∇, and the gradient of |∇|², of one worker.
struct derivatives {
  at::Tensor y, first, second;
};
derivatives serial(const at::Tensor& x, const at::Tensor& label, const angular_margin_options& how) {
  const at::Tensor leaf = x.clone().set_requires_grad(true);
  const at::Tensor y = with_margin(leaf, label, how);
  const at::Tensor g = torch::autograd::grad({bent(y)}, {leaf}, {}, true, true)[0];
  return {y.detach(), g.detach(), torch::autograd::grad({g.square().sum()}, {leaf})[0]};
}

bool near(const at::Tensor& x, const at::Tensor& wanted) { return at::allclose(x, wanted, 1e-10, 1e-12); }

/// The same of workers, for a tensor whose layout is its type or a value.
template <class X, class Y>
bool agrees(const X& x, const Y& label, const angular_margin_options& how, const derivatives& wanted) {
  const auto y = nn::angular_margin(x, label, how);
  const at::Tensor g = torch::autograd::grad({bent(y.local())}, {x.local()}, {}, true, true)[0];
  const at::Tensor again = torch::autograd::grad({g.square().sum()}, {x.local()})[0];
  const at::Tensor plain = torch::autograd::grad({bent(nn::angular_margin(x, label, how).local())}, {x.local()})[0];
  const auto whole = [&](const at::Tensor& local) {
    return tessera::full_tensor(tensor<dyn>(x.team(), x.layout(), local.detach()));
  };
  const bool value = near(tessera::full_tensor(y).detach(), wanted.y);
  const bool first = near(whole(g), wanted.first);
  const bool only_first = near(whole(plain), wanted.first);
  const bool second = near(whole(again), wanted.second);
  return value && first && only_first && second;
}

template <index_t Rows, index_t Classes>
bool same_as_serial(const at::Tensor& label) {
  const at::Tensor x = global_of({Rows, Classes}, numbers{9}) * 0.97;
  bool all = true;
  for (const angular_margin_options& how : all_options) {
    const derivatives wanted = serial(x, label, how);
    all = satisfied<grid>([&](team<grid>& t) {
            auto a = distribute<cosines<Rows, Classes>>(t, x);
            a.requires_grad();
            const auto y = distribute<labels<Rows>>(t, label);
            auto b = distribute<cosines<Rows, Classes>>(t, x).dynamic();
            b.requires_grad();
            const bool typed = agrees(a, y, how, wanted);
            return agrees(b, y.dynamic(), how, wanted) && typed;
          }) == 6 &&
          all;
  }
  return all;
}

}  // namespace

TEST_CASE("a margin widens the angle of each label's class, with derivatives of both orders, whoever has it",
          "[runtime][gradient]") {
  CHECK(same_as_serial<4, 7>(at::tensor({0, 1, 5, 6}, at::kLong)));
  CHECK(same_as_serial<5, 9>(at::tensor({8, 8, 3, 1, 4}, at::kLong)));
  CHECK(same_as_serial<3, 2>(at::tensor({1, 0, 1}, at::kLong)));  // one of three workers has no class
  CHECK(same_as_serial<1, 4>(at::tensor({3}, at::kLong)));        // and half of them have no row
}

TEST_CASE("a margin at cosines of 1 and -1 is finite, as its gradients of both orders are", "[runtime][gradient]") {
  const at::Tensor x = at::tensor({1.0, -1.0, 1.0 + 1e-12, -1.0 - 1e-12, 1.0, 0.5, -1.0}, at::kDouble).repeat({4, 1});
  const at::Tensor label = at::tensor({0, 1, 2, 3}, at::kLong);
  for (const bool easy : {false, true}) {
    const angular_margin_options how{.margin = 0.5, .scale = 2, .easy = easy};
    CHECK(satisfied<grid>([&](team<grid>& t) {
            auto a = distribute<cosines<4, 7>>(t, x);
            a.requires_grad();
            const auto y = nn::angular_margin(a, distribute<labels<4>>(t, label), how);
            const at::Tensor g = torch::autograd::grad({y.local().square().sum()}, {a.local()}, {}, true, true)[0];
            const at::Tensor again = torch::autograd::grad({g.square().sum()}, {a.local()})[0];
            const at::Tensor found = tessera::full_tensor(y).detach();
            const double below = easy ? -2 : 2 * (-1 - 0.5 * std::sin(0.5));
            const auto is = [&](index_t row, double value) {
              return std::abs(found[row][row].template item<double>() - value) < 1e-11;
            };
            return is(0, 2 * std::cos(0.5)) && is(1, below) && is(2, 2 * std::cos(0.5)) && is(3, below) &&
                   at::isfinite(g).all().template item<bool>() && at::isfinite(again).all().template item<bool>();
          }) == 6);
  }
}

TEST_CASE("a margin of half types is float inside and rounded once", "[runtime]") {
  const at::Tensor x = (global_of({4, 7}, numbers{9}) * 0.97).to(at::kBFloat16);
  const at::Tensor label = at::tensor({0, 1, 5, 6}, at::kLong);
  const at::Tensor wanted = with_margin(x.to(at::kDouble), label, {.scale = 48}).to(at::kBFloat16);
  CHECK(satisfied<grid>([&](team<grid>& t) {
          auto a = distribute<cosines<4, 7, bfloat16>>(t, x);
          a.requires_grad();
          const auto y = nn::angular_margin(a, distribute<labels<4>>(t, label), {.scale = 48});
          tessera::sum(y).backward();
          return at::equal(tessera::full_tensor(y).detach(), wanted) && a.grad().local().scalar_type() == at::kBFloat16;
        }) == 6);
}

TEST_CASE("a label of no class, and options of no margin, are refused on all workers", "[refusal][runtime]") {
  const at::Tensor x = global_of({4, 7}, numbers{9}) * 0.97;
  const auto of = [&](auto& t, std::vector<index_t> label, const angular_margin_options& how = {}) {
    return nn::angular_margin(distribute<cosines<4, 7>>(t, x), distribute<labels<4>>(t, at::tensor(label, at::kLong)),
                              how);
  };
  CHECK(refusals<grid>("tessera.loss.label", [&](auto& t) { of(t, {0, 1, 7, 6}); }) == 6);
  CHECK(refusals<grid>("tessera.loss.label", [&](auto& t) { of(t, {-1, 1, 2, 6}); }) == 6);
  CHECK(refusals<grid>("tessera.loss.label", [&](auto& t) { of(t, {-100, 1, 2, 6}, {.ignore_index = 1}); }) == 6);
  CHECK(refusals<grid>("none", [&](auto& t) { of(t, {-100, 1, 2, -100}); }) == 6);
  CHECK(refusals<grid>("tessera.loss.option", [&](auto& t) { of(t, {0, 1, 2, 3}, {.margin = -0.1}); }) == 6);
  CHECK(refusals<grid>("tessera.loss.option", [&](auto& t) { of(t, {0, 1, 2, 3}, {.margin = 3.2}); }) == 6);
  CHECK(refusals<grid>("tessera.loss.option", [&](auto& t) { of(t, {0, 1, 2, 3}, {.scale = 0}); }) == 6);
  CHECK(refusals<grid>("tessera.loss.option", [&](auto& t) { of(t, {0, 1, 2, 3}, {.scale = std::nan("")}); }) == 6);
  CHECK(refusals<grid>("tessera.tensor.element", [&](auto& t) {
          const tensor<dyn> a = distribute<cosines<4, 7>>(t, x).dynamic();
          nn::angular_margin(a, a);
        }) == 6);
  CHECK(refusals<grid>("tessera.rule.nonlinear", [&](auto& t) {
          layout terms = value_of<tensor<partition<grid, whole, whole>, shape_of<4, 7>, double>>.layout;
          terms.placements[0] = {placement::partial};
          const layout alike = value_of<tensor<partition<grid, whole>, shape_of<4>, std::int64_t>>.layout;
          const tensor<dyn> a{t.state(), terms, x};
          nn::angular_margin(a, tensor<dyn>{t.state(), alike, at::tensor({0, 1, 2, 3}, at::kLong)});
        }) == 6);
  CHECK(refusals<grid>("tessera.shape.extent", [&](auto& t) {
          nn::angular_margin(distribute<cosines<4, 7>>(t, x).dynamic(),
                             distribute<labels<5>>(t, at::tensor({0, 1, 2, 3, 4}, at::kLong)).dynamic());
        }) == 6);
}

namespace {

// A network that ends in a margin and its loss.
struct arc {
  constexpr auto operator()(auto x, auto y) const {
    return nn::cross_entropy(nn::angular_margin(x, y, {.margin = 0.25, .scale = 8, .easy = true}), y);
  }
};

}  // namespace

TEST_CASE("a network may have a margin, typed, put together while it runs or of a file", "[plan][runtime][gradient]") {
  using typed = nn::network<arc, cosines<4, 7>, labels<4>>;
  const at::Tensor x = global_of({4, 7}, numbers{9}) * 0.97;
  const at::Tensor label = at::tensor({0, 1, 5, 6}, at::kLong);
  const at::Tensor leaf = x.clone().set_requires_grad(true);
  const at::Tensor wanted =
      at::cross_entropy_loss(with_margin(leaf, label, {.margin = 0.25, .scale = 8, .easy = true}), label);
  wanted.backward();
  const std::string file = R"({"inputs": [
      {"name": "x", "shape": [4, 7], "element": "double", "dims": [{"blocks": ["up"]}, {"blocks": ["across"]}]},
      {"name": "y", "shape": [4], "element": "int64", "dims": [{"blocks": ["up"]}],
       "meaning": {"across": "invariant"}}],
    "nodes": [{"name": "a", "of": ["x", "y"], "function": "angular_margin", "margin": 0.25, "scale": 8, "easy": true},
              {"name": "loss", "of": ["a", "y"], "function": "cross_entropy"}], "outputs": "loss"})";
  CHECK(satisfied<grid>([&](team<grid>& t) {
          const auto y = distribute<labels<4>>(t, label);
          const auto agrees = [&](const auto& net, const auto& call) {
            auto a = distribute<cosines<4, 7>>(t, x);
            a.requires_grad();
            const auto loss = call(net, a);
            loss.backward();
            return near(loss.local().detach(), wanted.detach()) && near(tessera::full_tensor(a.grad()), leaf.grad());
          };
          nn::program p;
          const auto in = p.input<cosines<4, 7>>();
          p.output(arc{}(in, p.input<labels<4>>()));
          nn::program read;
          nn::read_network(read, file, t.mesh(), "arc.json");
          const auto by_value = [&](const auto& net, const auto& a) { return net({a.dynamic(), y.dynamic()})[0]; };
          const bool one = agrees(typed{t, seed{1}}, [&](const auto& net, const auto& a) { return net(a, y); });
          const bool two = agrees(nn::dynamic_network{t, seed{1}, p}, by_value);
          return agrees(nn::dynamic_network{t, seed{1}, read}, by_value) && one && two;
        }) == 6);
  nn::program p;
  const auto a = p.input<cosines<4, 7>>();
  CHECK(told([&] { nn::angular_margin(a, p.input<labels<4>>(), {.margin = -1}); }) == "tessera.loss.option");
}

}  // namespace tessera::testing::of_margins
