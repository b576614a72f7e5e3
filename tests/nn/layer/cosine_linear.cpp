#include "tests/support/tensors.hpp"

#include <tessera/nn/network/program_parts.hpp>

namespace tessera::testing::of_cosines {

using namespace engine;

namespace {

struct up : axis<2> {};
struct across : axis<3> {};
using grid = mesh<up, across>;
using both_cut = tensor<partition<grid, blocks<up>, blocks<across>>, shape_of<5, 7>, double>;
using features = tensor<partition<grid, blocks<up>, whole, invariant<across>>, shape_of<5, 7>, double>;
using met = partition<grid, blocks<up>, whole, replicate<across>>;
template <index_t Classes, class E = double>
using weight_of = tensor<partition<grid, blocks<across>, whole, replicate<up>>, shape_of<Classes, 7>, E>;

at::Tensor rows_of_one(const at::Tensor& x) { return x / x.norm(2, -1, true).clamp_min(1e-12); }
bool near(const at::Tensor& x, const at::Tensor& wanted) { return at::allclose(x, wanted, 1e-10, 1e-12); }

/// Numbers with a row of zeros.
at::Tensor some(index_t rows, index_t columns) {
  at::Tensor x = global_of({rows, columns}, numbers{4});
  x[1].zero_();
  return x;
}

at::Tensor bent(const at::Tensor& y) { return (y * y * y).sum(); }

/// A tensor of workers, normalised along a dimension: the value, ∇, and the gradient of |∇|².
template <int Dim, class T>
bool normalises(const at::Tensor& x) {
  const at::Tensor leaf = x.clone().set_requires_grad(true);
  const at::Tensor squares = leaf.square().sum({Dim}, true);
  const at::Tensor y = leaf / at::where(squares > 0, at::where(squares > 0, squares, 1).sqrt(), 1e-12);
  const at::Tensor g = torch::autograd::grad({bent(y)}, {leaf}, {}, true, true)[0];
  const at::Tensor again = torch::autograd::grad({g.square().sum()}, {leaf})[0];
  const auto held_to = [&](auto a) {
    a.requires_grad();
    const auto z = tessera::normalize<Dim>(a);
    const at::Tensor slope = torch::autograd::grad({bent(z.local())}, {a.local()}, {}, true, true)[0];
    const at::Tensor bend = torch::autograd::grad({slope.square().sum()}, {a.local()})[0];
    const auto whole_of = [&](const at::Tensor& local) {
      return tessera::full_tensor(tensor<dyn>(a.team(), a.layout(), local.detach()));
    };
    const bool value = near(tessera::full_tensor(z).detach(), y.detach());
    const bool first = near(whole_of(slope), g.detach());
    return near(whole_of(bend), again) && value && first;
  };
  return satisfied<grid>([&](team<grid>& t) {
           const bool typed = held_to(distribute<T>(t, x));
           return held_to(distribute<T>(t, x).dynamic()) && typed;
         }) == 6;
}

}  // namespace

TEST_CASE("rows and columns that are normalised have length 1, cut or not, but for those of zeros",
          "[runtime][gradient]") {
  CHECK(normalises<1, both_cut>(some(5, 7)));
  CHECK(normalises<0, both_cut>(some(5, 7)));
  CHECK(normalises<1, tensor<partition<grid, blocks<up, across>, whole>, shape_of<5, 7>, double>>(some(5, 7)));
  CHECK(normalises<1, tensor<partition<grid, blocks<up>, blocks<across>>, shape_of<3, 2>, double>>(some(3, 2)));
  using halves = tensor<partition<grid, blocks<up>, blocks<across>>, shape_of<5, 7>, bfloat16>;
  const at::Tensor x = some(5, 7).to(at::kBFloat16);
  CHECK(satisfied<grid>([&](team<grid>& t) {
          return at::equal(tessera::full_tensor(tessera::normalize<1>(distribute<halves>(t, x))),
                           rows_of_one(x.to(at::kDouble)).to(at::kBFloat16));
        }) == 6);
  CHECK(refusals<grid>("tessera.rule.nonlinear", [&](auto& t) {
          layout terms = value_of<tensor<partition<grid, whole, whole>, shape_of<5, 7>, double>>.layout;
          terms.placements[0] = {placement::partial};
          tessera::normalize<1>(tensor<dyn>{t.state(), terms, some(5, 7)});
        }) == 6);
}

namespace {

template <index_t Classes>
using head = nn::cosine_linear<weight_of<Classes>, met>;
template <index_t Classes>
struct arc {
  constexpr auto operator()(auto x, auto labels) const {
    return nn::cross_entropy(nn::angular_margin(x | head<Classes>{}, labels, {.scale = 4}), labels);
  }
};
using labels = tensor<partition<grid, blocks<up>, invariant<across>>, shape_of<5>, std::int64_t>;

/// A step of such a network, its loss and gradients those of one worker, its weight that of nn::linear.
template <index_t Classes>
bool trains(const at::Tensor& label) {
  using net_type = nn::network<arc<Classes>, features, labels>;
  using linear_type = nn::sequential<features, nn::linear<Classes, no_bias, cut_out<across>>>;
  const at::Tensor x = some(5, 7);
  return satisfied<grid>([&](team<grid>& t) {
           const net_type net{t, seed{3}};
           const linear_type linear{t, seed{3}};
           const at::Tensor w = nn::state_of(net).at("0.weight").clone().set_requires_grad(true);
           const at::Tensor leaf = x.clone().set_requires_grad(true);
           const at::Tensor cosine = rows_of_one(leaf).matmul(rows_of_one(w).t());
           const at::Tensor one_hot = at::one_hot(label, Classes).to(at::kBool);
           const at::Tensor c = cosine.clamp(-0.999999, 0.999999);
           const at::Tensor wider =
               at::where(c > -std::cos(0.5), at::cos(at::acos(c) + 0.5), cosine - 0.5 * std::sin(0.5));
           const at::Tensor wanted = at::cross_entropy_loss(4 * at::where(one_hot, wider, cosine), label);
           wanted.backward();
           auto in = distribute<features>(t, x);
           in.requires_grad();
           const auto loss = net(in, distribute<labels>(t, label));
           loss.backward();
           nn::program p;
           const auto of_program = p.input<features>();
           p.output(arc<Classes>{}(of_program, p.input<labels>()));
           const nn::dynamic_network dynamic{t, seed{3}, p};
           const auto again = dynamic({in.dynamic(), distribute<labels>(t, label).dynamic()})[0];
           const bool by_value = near(again.local().detach(), wanted.detach());
           const bool alike = at::equal(w.detach(), nn::state_of(linear).at("0.weight"));
           const bool value = near(loss.local().detach(), wanted.detach());
           const bool of_x = near(tessera::full_tensor(in.grad()), leaf.grad());
           return alike && value && of_x && by_value;
         }) == 6;
}

}  // namespace

TEST_CASE("cosines of classes that are cut, a margin and its loss are those of one worker", "[runtime][gradient]") {
  CHECK(trains<8>(at::tensor({0, 7, 3, 3, 5}, at::kLong)));
  CHECK(trains<2>(at::tensor({0, 1, 1, 0, 1}, at::kLong)));  // one of three workers has no class
}

}  // namespace tessera::testing::of_cosines
