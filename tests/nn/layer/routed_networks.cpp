#include "tests/support/routed.hpp"
#include "tests/support/serial_leaves.hpp"

#include <tessera/nn/file/network_file.hpp>

namespace tessera::testing::routed_networks {

using namespace engine;

namespace {

struct data : axis<2> {};
struct place : axis<2> {};
struct model : axis<2> {};
using grid = mesh<data, place, model>;
struct tokens : dyn {};
using rows = tensor<partition<grid, blocks<data, place>, whole, invariant<model>>, shape<tokens, dim<6>>, double>;
struct scoring;
struct shared_expert;

/// A mixture of five experts, whose features `model` cuts, beside one that all rows have.
template <class X, class... Options>
auto constexpr mixed(const X& x) {
  const auto scores = x | nn::named<scoring, nn::linear<5>>{};
  const auto [slots, gates, numbers_of_slots, chosen] =
      nn::route<5, choices<2>, over_experts<place>, Options...>{}(x, scores);
  const auto served = slots | nn::experts<5, 8, cut_out<model>>{} | nn::relu{} | nn::experts<5, 6, cut_in<model>>{};
  return nn::combine{}(served, gates, numbers_of_slots, chosen) +
         (x | nn::named<shared_expert, nn::linear<6, cut_out<model>>>{});
}
struct mixture {
  constexpr auto operator()(auto x) const { return mixed<decltype(x), capacity<5, 4>>(x); }
};
struct noisy_mixture {
  constexpr auto operator()(auto x) const {
    return mixed<decltype(x), noise<1, 2>, balanced_by_bias<1, 10>, sigmoid_gates, normalised_gates>(x);
  }
};

void write(nn::program& p) {
  const auto x = p.input<rows>();
  const auto scores = x | nn::under("scoring", nn::linear_layer{.out = 5});
  const nn::route_layer route{
      .experts = 5, .choices = 2, .capacity = 1.25, .over_experts = engine::axis_names{"place"}};
  const auto [slots, gates, numbers_of_slots, chosen] = route(x, scores);
  const auto served = slots | nn::experts_layer{.experts = 5, .out = 8, .cut_out = {"model"}} | nn::relu{} |
                      nn::experts_layer{.experts = 5, .out = 6, .cut_in = {"model"}};
  p.output(nn::combine{}(served, gates, numbers_of_slots, chosen) +
           (x | nn::under("shared_expert", nn::linear_layer{.out = 6, .cut_out = {"model"}})));
}

constexpr const char* as_file = R"({
  "inputs": [{"name": "x", "shape": ["tokens", 6], "element": "double",
              "dims": [{"blocks": ["data", "place"]}, {"whole": true}], "meaning": {"model": "invariant"}}],
  "nodes": [
    {"name": "scores", "of": "x", "layer": "linear", "out_features": 5, "path": "scoring"},
    {"name": "routed", "of": ["x", "scores"], "layer": "route", "experts": 5, "choices": 2, "capacity": 1.25,
     "over_experts": ["place"]},
    {"name": "wide", "of": "routed.0", "layer": "experts", "experts": 5, "out_features": 8, "cut_out": ["model"],
     "path": "0"},
    {"name": "bent", "of": "wide", "layer": "relu"},
    {"name": "served", "of": "bent", "layer": "experts", "experts": 5, "out_features": 6, "cut_in": ["model"],
     "path": "2"},
    {"name": "back", "of": ["served", "routed.1", "routed.2", "routed.3"], "layer": "combine"},
    {"name": "beside", "of": "x", "layer": "linear", "out_features": 6, "cut_out": ["model"],
     "path": "shared_expert"},
    {"name": "y", "of": ["back", "beside"], "function": "add"}],
  "outputs": "y"})";

}  // namespace

TEST_CASE("routed rows of types, of values and from a file have the same bits, forward and backward", "[runtime]") {
  const auto run = in_team<grid>([](auto& t) {
    nn::program written, read;
    write(written);
    nn::read_network(read, as_file, t.mesh(), "mixture.json");
    return alike_in_bits<nn::network<mixture, rows>>(t, global_of({11, 6}, numbers{1}), {&written, &read});
  });
  INFO(run.errors());
  REQUIRE(run.well());
  for (const auto& r : run.results) CHECK(*r);
}

TEST_CASE("a router that draws and moves biases chooses alike where it runs again for its backward", "[gradient]") {
  const auto run = in_team<grid>([](team<grid>& t) {
    const auto seen = [&](const auto& net) {
      std::vector<at::Tensor> all;
      for (const index_t n : {11, 3, 7}) {
        auto x = distribute<rows>(t, global_of({n, 6}, numbers{static_cast<std::uint64_t>(n)}));
        x.requires_grad();
        const auto y = net(x);
        sum(y * y).backward();
        all.push_back(full_tensor(y));
        all.push_back(full_tensor(x.grad()));
      }
      for (const at::Tensor& w : net.parameters()) all.push_back(w.grad());
      net.each_buffer([&](const nn::buffer& b) { all.push_back(b.value()); });
      return all;
    };
    const auto once = seen(nn::network<noisy_mixture, rows>{t, seed{3}});
    const auto again = seen(nn::network<nn::recompute<noisy_mixture>, rows>{t, seed{3}});
    return once.size() > 10 && std::equal(once.begin(), once.end(), again.begin(), again.end(),
                                          [](const at::Tensor& a, const at::Tensor& b) { return at::equal(a, b); });
  });
  INFO(run.errors());
  REQUIRE(run.well());
  for (const auto& r : run.results) CHECK(*r);
}

TEST_CASE("rows that are routed have a second derivative, on workers without rows or experts too", "[gradient]") {
  const auto run = in_team<grid>([](team<grid>& t) {
    const nn::network<mixture, rows> net{t, seed{3}};
    const at::Tensor here = global_of({3, 6}, numbers{3}), along = global_of({3, 6}, numbers{4});
    const auto slope = [&](const at::Tensor& at, bool again) {
      auto x = distribute<rows>(t, at);
      x.requires_grad();
      const auto cubes = map_elements(net(x), [](const at::Tensor& y) { return y * y * y; });
      const at::Tensor s = tessera::sum(cubes).local();
      return std::pair{x, torch::autograd::grad({s}, {x.local()}, {at::ones_like(s)}, again, again)[0]};
    };
    const auto square = [&](double step) {
      const auto [x, g] = slope(here + step * along, false);
      return tessera::full_tensor(tensor<dyn>(x.team(), cotangent(x.layout()), g))
          .square()
          .sum()
          .template item<double>();
    };
    const auto [x, g] = slope(here, true);
    g.square().sum().backward();
    const double got = (tessera::full_tensor(x.grad()) * along).sum().template item<double>();
    const double wanted = (square(1e-5) - square(-1e-5)) / 2e-5;
    return std::abs(got - wanted) / std::abs(wanted);
  });
  INFO(run.errors());
  REQUIRE(run.well());
  CHECK(*run.results[0] < 1e-5);
}

namespace {

/// How far bfloat16 rows are from the same in double, over what is added up, in roundings.
double half_apart(team<grid>& t) {
  nn::program p;
  const layout lies = [] {
    layout x = value_of<rows>.layout;
    x.dims[0].extent = 11;
    return x;
  }();
  layout scores = lies;
  scores.dims[1].extent = 5;
  const auto given = p.input(tensor_value{lies, element::bfloat16});
  const auto scored = p.input(tensor_value{scores, element::float32});
  const nn::route_layer route{
      .experts = 5, .choices = 2, .capacity = 1.25, .over_experts = engine::axis_names{"place"}};
  const auto [slots, gates, numbers_of_slots, chosen] = route(given, scored);
  p.output(nn::combine{}(slots, gates, numbers_of_slots, chosen));
  const nn::dynamic_network net{t, seed{3}, p};
  const at::Tensor x = global_of({11, 6}, numbers{1}).to(at::kBFloat16);
  const at::Tensor s = (2 * global_of({11, 5}, numbers{2})).to(at::kFloat);
  const tensor<dyn> y = net({distribute(t, lies, x), distribute(t, scores, s)})[0];
  if (y.type() != element::bfloat16) return 1e9;
  const at::Tensor wide = s.to(at::kDouble);
  const routed_serially r = routed(route.description(), wide, {3, 3, 3, 2});
  const auto itself = [](index_t, const at::Tensor& row) { return row; };
  const at::Tensor serial = combined(r, x.to(at::kDouble), 6, itself);
  const at::Tensor bound = combined(r, x.to(at::kDouble).abs(), 6, itself);
  return ((full_tensor(y).to(at::kDouble) - serial).abs() / (bound + 1e-30)).max().item<double>() / 0x1p-8;
}

}  // namespace

TEST_CASE("half rows are added in float and rounded once at each place and once at their source", "[runtime]") {
  const auto run = in_team<grid>([](team<grid>& t) { return half_apart(t); });
  INFO(run.errors());
  REQUIRE(run.well());
  for (const auto& r : run.results) CHECK(*r < 2.01);
}

namespace {

/// What a router with noise and biases chose in some steps on a mesh, and its biases then.
template <int D, int P>
std::vector<at::Tensor> chosen_on_a_mesh() {
  struct by_data : axis<D> {};
  struct by_place : axis<P> {};
  using mesh_of_both = mesh<by_data, by_place>;
  using lies = partition<mesh_of_both, blocks<by_data, by_place>, whole>;
  const auto run = in_team<mesh_of_both>([](team<mesh_of_both>& t) {
    nn::program p;
    const auto x = p.input<tensor<lies, shape_of<11, 4>, double>>();
    const auto scores = p.input<tensor<lies, shape_of<11, 5>, double>>();
    const nn::route_layer route{
        .experts = 5, .choices = 2, .sigmoid_gates = true, .noise = 0.5, .balanced_by_bias = 0.1};
    const auto [slots, gates, numbers_of_slots, chosen] = route(x, scores);
    p.output(flows{nn::combine{}(slots, gates, numbers_of_slots, chosen), chosen});
    nn::dynamic_network net{t, seed{3}, p};
    const auto given = distribute<tensor<lies, shape_of<11, 4>, double>>(t, global_of({11, 4}, numbers{1}));
    const auto scored = distribute<tensor<lies, shape_of<11, 5>, double>>(t, global_of({11, 5}, numbers{2}));
    std::vector<at::Tensor> seen;
    for (int step = 0; step < 4; ++step) {
      if (step == 3) net.eval();
      const std::vector<tensor<dyn>> y = net({given.dynamic(), scored.dynamic()});
      seen.push_back(full_tensor(y[0]));
      seen.push_back(full_tensor(y[1]) != -1);
    }
    net.each_buffer([&](const nn::buffer& b) {
      if (b.key() == "0.bias") seen.push_back(b.value());
    });
    return seen;
  });
  INFO(run.errors());
  REQUIRE(run.well());
  return *run.results[0];
}

}  // namespace

TEST_CASE("noise and biases of a router are the same on any mesh, and biases follow the load", "[runtime]") {
  const std::vector<at::Tensor> one = chosen_on_a_mesh<1, 1>();
  REQUIRE(one.size() == 9);
  CHECK(!at::equal(one[1], one[3]));  // another draw
  for (const std::vector<at::Tensor>& other : {chosen_on_a_mesh<2, 2>(), chosen_on_a_mesh<1, 3>()}) {
    REQUIRE(other.size() == 9);
    for (std::size_t i = 0; i < 9; ++i) CHECK(apart(one[i], other[i]) < 1e-14);
  }
  at::Tensor bias = at::zeros({5}, at::kDouble);
  for (std::size_t step = 0; step < 3; ++step) {
    const at::Tensor load = one[2 * step + 1].sum(0).to(at::kDouble);
    bias += 0.1 * at::sign(load.mean() - load);
  }
  CHECK(apart(bias, one[8]) < 1e-14);
  routed_serially last = [&] {
    routing how;
    how.experts = 5;
    how.choices = 2;
    how.sigmoid = true;
    return routed(how, global_of({11, 5}, numbers{2}), {11}, bias);
  }();
  CHECK(at::equal(at::zeros({11, 5}, at::kBool).scatter_(1, last.chosen, true), one[7]));  // without noise
}

TEST_CASE("the noise of a router has its deviation in training, anew in each step, and none else", "[runtime]") {
  struct alone : axis<1> {};
  const auto run = in_team<mesh<alone>>([](team<mesh<alone>>& t) {
    using scores = tensor<partition<mesh<alone>, blocks<alone>, whole>, shape_of<600, 2>, double>;
    nn::program p;
    const auto x = p.input<scores>();
    const auto [slots, gates, numbers_of_slots, chosen] =
        nn::route_layer{.experts = 2, .choices = 2, .noise = 0.5}(x, x);
    p.output(gates);
    nn::dynamic_network net{t, seed{3}, p};
    const tensor<dyn> none = distribute<scores>(t, at::zeros({600, 2}, at::kDouble)).dynamic();
    std::vector<at::Tensor> seen;
    for (const bool training : {true, true, false}) {
      net.train(training);
      const at::Tensor g = full_tensor(net(none)).flatten(0, 2).narrow(0, 0, 600);
      seen.push_back(at::log(g.select(1, 0) / g.select(1, 1)));  // how far the two scores of a row are apart
    }
    return seen;
  });
  INFO(run.errors());
  REQUIRE(run.well());
  const std::vector<at::Tensor>& seen = *run.results[0];
  CHECK(std::abs(seen[0].square().mean().item<double>() - 2 * 0.25) < 0.08);
  CHECK(std::abs(seen[1].square().mean().item<double>() - 2 * 0.25) < 0.08);
  CHECK(!at::equal(seen[0], seen[1]));
  CHECK(seen[2].abs().max().item<double>() == 0);
}

namespace {

/// What is told on all workers of a router with such options, of scores of which one may be no number.
std::string refused(const nn::route_layer& how, bool no_number = false) {
  std::set<std::string> all;
  const auto run = in_team<grid>([&](team<grid>& t) {
    return told([&] {
      layout lies = value_of<rows>.layout, scores = lies;
      lies.dims[0].extent = scores.dims[0].extent = 11;
      scores.dims[1].extent = 5;
      nn::program p;
      const auto given = p.input(tensor_value{lies, element::float64});
      const auto scored = p.input(tensor_value{scores, element::float64});
      const auto [slots, gates, numbers_of_slots, chosen] = how(given, scored);
      p.output(nn::combine{}(slots, gates, numbers_of_slots, chosen));
      const nn::dynamic_network net{t, seed{3}, p};
      at::Tensor s = global_of({11, 5}, numbers{2});
      if (no_number) s[4][2] = std::numeric_limits<double>::infinity();
      net({distribute(t, lies, global_of({11, 6}, numbers{1})), distribute(t, scores, s)});
    });
  });
  for (const auto& r : run.results) all.insert(r ? *r : run.errors());
  return all.size() == 1 ? *all.begin() : "several";
}

}  // namespace

TEST_CASE("what a router cannot do is one error on every worker", "[refusal]") {
  const engine::axis_names at{"place"};
  CHECK(refused({.experts = 5, .choices = 2, .over_experts = at}) == "none");
  CHECK(refused({.experts = 5, .choices = 2, .over_experts = at}, true) == "tessera.route.gate");
  CHECK(refused({.experts = 5, .choices = 6}) == "tessera.route.choices");
  CHECK(refused({.experts = 5, .choices = 0}) == "tessera.route.choices");
  CHECK(refused({.experts = 5, .capacity = 0.0}) == "tessera.route.capacity");
  CHECK(refused({.experts = 5, .capacity = -1.0}) == "tessera.route.capacity");
  CHECK(refused({.experts = 5, .capacity = std::nan("")}) == "tessera.route.capacity");
  CHECK(refused({.experts = 5, .groups = -1}) == "tessera.route.group_count");
  CHECK(refused({.experts = 5, .noise = -1}) == "tessera.route.option");
  CHECK(refused({.experts = 4}) == "tessera.shape.extent");
  CHECK(refused({.experts = 5, .over_experts = engine::axis_names{"nowhere"}}) == "tessera.partition.axis");
}

}  // namespace tessera::testing::routed_networks
