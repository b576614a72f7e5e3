#include "tests/support/layers.hpp"

#include <torch/optim/sgd.h>
#include <tessera/nn/file/network_file.hpp>
#include <tessera/nn/network/program.hpp>
#include <tessera/operation/layer/layer_values.hpp>

namespace tessera::testing::of_normalisation {

using namespace engine;

// Normalisations against LibTorch's in one process: networks, statistics that run, large means; the fuzz rolls options
// and partitions.

namespace {

/// How far outputs and running statistics are from LibTorch's after three calls that train and one that does not.
double distance_of_running(dice& d, const mesh_value& mesh, bool by_sample) {
  const int world = mesh.size();
  static_vector<index_t, max_dimensions> e;
  for (const index_t n : {d.roll(2, 5), d.roll(1, 5), d.roll(by_sample ? 2 : 1, 6)}) e.push(n);
  const bool cumulative = d.once_in(2);
  const bool affine = d.once_in(2);
  const normalisation what =
      by_sample ? nn::instance_norm_layer{.momentum = 0.25, .cumulative = cumulative, .affine = affine, .tracked = true}
                      .description()
                : nn::batch_norm_layer{.momentum = 0.25, .cumulative = cumulative, .affine = affine}.description();
  const layout x = roll_layout(d, mesh, e, {false, true, true, false});
  const layer_plan p = plan_of(what, {x, element::float64});
  if (!p.why.ok()) return 1e300;
  at::Tensor mean = at::zeros({e[1]}, at::kDouble);
  at::Tensor variance = at::ones({e[1]}, at::kDouble);
  const auto serial = [&](const at::Tensor& in, bool training, double momentum) {
    return by_sample ? at::instance_norm(in, {}, {}, mean, variance, training, momentum, 1e-5, false)
                     : at::batch_norm(in, {}, {}, mean, variance, training, momentum, 1e-5, false);
  };
  std::vector<shards> given;
  std::vector<at::Tensor> expected;
  for (int call = 0; call < 3; ++call) {
    given.push_back(deal(x, world, numbers{static_cast<std::uint64_t>(d.roll(1, 1000))}));
    expected.push_back(serial(given.back().global, true, what.cumulative ? 1.0 / (call + 1) : 0.25));
  }
  expected.push_back(serial(given.back().global, false, 0));
  const auto run = on_workers(world, [&](const std::shared_ptr<transport>& carrier) {
    const auto team = std::make_shared<team_state>(carrier, mesh);
    const nn::engine::bound_layer bound(team, p);
    nn::engine::layer_state state;
    for (int i = 0; i < p.parameters(); ++i)
      state.parameters.emplace_back(team, p.parameter(i).name, p.parameter(i), element::float64, tessera::seed{1});
    for (int i = 0; i < p.buffers(); ++i)
      state.buffers.emplace_back(team, p.buffer(i).name, p.buffer(i), tessera::seed{1});
    std::vector<at::Tensor> operands{{}};
    std::vector<at::Tensor> all;
    for (const shards& s : given) {
      operands[0] = s.local[static_cast<std::size_t>(carrier->rank())];
      all.push_back(nn::forward({bound, operands, state}, what).detach());
    }
    all.push_back(nn::forward({bound, operands, state, false}, what).detach());
    for (const nn::buffer& b : state.buffers) all.push_back(b.value());
    return all;
  });
  if (!run.well()) return 1e300;
  const auto each = [&](std::size_t i) {
    std::vector<at::Tensor> all;
    for (const auto& r : run.results) all.push_back((*r)[i]);
    return all;
  };
  double worst = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) worst = std::max(worst, distance(p.output(), each(i), expected[i]));
  // LibTorch counts no calls of instance norms; means over all calls need it.
  const at::Tensor calls = at::full({}, by_sample && !what.cumulative ? 0.0 : 3.0, at::kDouble);
  return std::max({worst, distance(p.buffer(0).stored, each(4), mean), distance(p.buffer(1).stored, each(5), variance),
                   distance(p.buffer(2).stored, each(6), calls)});
}

struct across : axis<2> {};
struct down : axis<3> {};
using plane = mesh<across, down>;
struct samples : dyn {};
using images = partition<plane, whole, whole, blocks<down>, blocks<across>>;
// of two rows over three workers one has none
using picture = tensor<images, shape<samples, dim<4>, dim<2>, dim<5>>, double>;
using net_type =
    nn::sequential<picture, nn::batch_norm<eps<1, 1'000>, momentum<1, 5>>, nn::relu,
                   nn::batch_norm<cumulative, no_affine>, nn::layer_norm<over_last<3>>, nn::layer_norm<no_bias>,
                   nn::rms_norm<over_last<2>, eps<1, 100>>, nn::batch_norm<no_tracking>>;

}  // namespace

TEST_CASE("running statistics are LibTorch's, unbiased and of all workers, and are what eval uses", "[law][runtime]") {
  dice d{5};
  for (const auto& grid : grids)
    for (int round = 0; round < 24; ++round)
      CHECK(distance_of_running(d, grid_of(grid[0], grid[1]), round % 2 != 0) < 1e-12);
}

TEST_CASE("a network of normalisations trains as the serial one", "[gradient]") {
  const auto run = in_team<plane>([](auto& t) {
    net_type net{t, seed{3}};
    auto w = nn::state_of(net);
    std::vector<at::Tensor> leaves;
    for (const char* key : {"0.weight", "0.bias", "3.weight", "3.bias", "4.weight", "5.weight", "6.weight", "6.bias"})
      leaves.push_back(w.at(key).requires_grad_(true));
    torch::optim::SGD ours(net.parameters(), torch::optim::SGDOptions(0.01));
    torch::optim::SGD theirs(leaves, torch::optim::SGDOptions(0.01));
    double worst = net.parameters().size() == 8 && w.size() == 8 + 6 && net.training() ? 0 : 1;
    const auto judge = [&](const at::Tensor& a, const at::Tensor& b) {
      worst = std::max(worst, (a - b).abs().max().template item<double>());
    };
    for (int step = 0; step < 5; ++step) {
      const bool training = step < 4;
      net.train(training);
      const at::Tensor a =
          global_of({step == 2 ? 3 : 2, 4, 2, 5}, numbers{static_cast<std::uint64_t>(step)}).set_requires_grad(true);
      auto x = distribute<picture>(t, a.detach());
      x.requires_grad();
      ours.zero_grad();
      theirs.zero_grad();
      const auto y = net(x);
      at::Tensor s = at::relu(at::batch_norm(a, w.at("0.weight"), w.at("0.bias"), w.at("0.running_mean"),
                                             w.at("0.running_var"), training, 0.2, 1e-3, false));
      s = at::batch_norm(s, {}, {}, w.at("2.running_mean"), w.at("2.running_var"), training, 1.0 / (step + 1), 1e-5,
                         false);
      s = at::layer_norm(s, {4, 2, 5}, w.at("3.weight"), w.at("3.bias"));
      s = at::rms_norm(at::layer_norm(s, {5}, w.at("4.weight")), {2, 5}, w.at("5.weight"), 0.01);
      s = at::batch_norm(s, w.at("6.weight"), w.at("6.bias"), {}, {}, true, 0, 1e-5, false);
      sum(tanh(y) * x).backward();
      (at::tanh(s) * a).sum().backward();
      judge(full_tensor(y), s.detach());
      judge(full_tensor(x.grad()), a.grad());
      ours.step();
      theirs.step();
      if (training) w.at("0.num_batches_tracked") += 1;
      if (training) w.at("2.num_batches_tracked") += 1;
    }
    for (const auto& [key, value] : nn::state_of(net)) judge(value, w.at(key).detach());
    return worst;
  });
  INFO(run.errors());
  REQUIRE(run.well());
  for (const auto& r : run.results) CHECK(*r < 1e-12);
}

TEST_CASE("normalisations and upsampling that are values are those that are types", "[runtime]") {
  using typed = nn::sequential<picture, nn::batch_norm<eps<1, 1'000>, momentum<1, 5>>,
                               nn::upsample<size<5, 13>, mode<interpolation::cubic>>,
                               nn::batch_norm<cumulative, no_affine>, nn::layer_norm<over_last<3>, no_bias>,
                               nn::rms_norm<>, nn::rms_norm<over_last<2>, eps<1, 100>, no_affine>>;
  const auto run = in_team<plane>([](auto& t) {
    nn::program p;
    p.output(p.input<picture>() | nn::batch_norm_layer{.eps = 1e-3, .momentum = 0.2} |
             nn::upsample_layer{.sizes = {5, 13}, .mode = interpolation::cubic} |
             nn::batch_norm_layer{.cumulative = true, .affine = false} |
             nn::layer_norm_layer{.last = 3, .bias = false} | nn::rms_norm_layer{} |
             nn::rms_norm_layer{.last = 2, .eps = 0.01, .affine = false});
    const typed one{t, seed{4}};
    const nn::dynamic_network other{t, seed{4}, p};
    const auto x = distribute<picture>(t, global_of({3, 4, 2, 5}, numbers{6}));
    const bool same = at::equal(one(x).local(), other({x.dynamic()})[0].local());
    return same && nn::state_of(one).size() == nn::state_of(other).size() &&
           at::equal(nn::state_of(one).at("0.running_var"), nn::state_of(other).at("0.running_var"));
  });
  INFO(run.errors());
  REQUIRE(run.well());
  for (const auto& r : run.results) CHECK(*r);
}

TEST_CASE("statistics of large means keep their digits, and half types are rounded once", "[runtime]") {
  using cut = tensor<partition<plane, blocks<across>, whole, blocks<down>>, shape<samples, dim<3>, dim<40>>, float>;
  using cut_half =
      tensor<partition<plane, blocks<across>, whole, blocks<down>>, shape<samples, dim<3>, dim<40>>, bfloat16>;
  const auto run = in_team<plane>([](auto& t) {
    const at::Tensor a = (global_of({9, 3, 40}, numbers{8}) + 1e4).to(at::kFloat);
    const auto exact = [](const at::Tensor& x) {
      return at::batch_norm(x.to(at::kDouble), {}, {}, {}, {}, true, 0, 1e-5, false);
    };
    const auto far = [](const at::Tensor& x, const at::Tensor& y) {
      return (x.to(at::kDouble) - y).abs().max().template item<double>();
    };
    nn::sequential<cut, nn::batch_norm<no_affine, no_tracking>> net{t, seed{1}};
    nn::sequential<cut_half, nn::batch_norm<no_affine, no_tracking>> half{t, seed{1}};
    const double serial = far(at::batch_norm(a, {}, {}, {}, {}, true, 0, 1e-5, false), exact(a));
    const double mine = far(full_tensor(net(distribute<cut>(t, a))), exact(a));
    const at::Tensor b = global_of({9, 3, 40}, numbers{9}).to(at::kBFloat16);
    nn::sequential<cut, nn::group_norm<1, no_affine>> group{t, seed{1}};
    const at::Tensor of_samples = at::group_norm(a.to(at::kDouble), 1);
    const double grouped = far(full_tensor(group(distribute<cut>(t, a))), of_samples);
    if (grouped > 2 * far(at::group_norm(a, 1), of_samples) || grouped > 1e-6) return false;
    return mine <= 2 * serial && mine < 1e-6 &&
           at::equal(full_tensor(half(distribute<cut_half>(t, b))), exact(b).to(at::kBFloat16));
  });
  INFO(run.errors());
  REQUIRE(run.well());
  for (const auto& r : run.results) CHECK(*r);
}

TEST_CASE("workers outside of the mesh of a normalisation whose groups are cut have no part in them", "[runtime]") {
  using upper = fixed<plane, down, 0>;
  using part = tensor<partition<upper, whole, blocks<across>, whole>, shape<dim<3>, dim<5>, dim<4>>, double>;
  using samples_cut = tensor<partition<upper, blocks<across>, whole, whole>, shape<dim<5>, dim<3>, dim<4>>, double>;
  using channels_cut = tensor<partition<upper, whole, blocks<across>, whole>, shape<dim<5>, dim<6>, dim<4>>, double>;
  const auto run = in_team<plane>([](auto& t) {
    const auto above = t.template over<upper>();
    nn::sequential<part, nn::layer_norm<over_last<2>>, nn::rms_norm<over_last<2>>> each{above, seed{1}};
    nn::sequential<samples_cut, nn::batch_norm<>> batch{above, seed{1}};
    const at::Tensor a = global_of({3, 5, 4}, numbers{1}).set_requires_grad(true);
    const at::Tensor b = global_of({5, 3, 4}, numbers{2}).set_requires_grad(true);
    auto x = distribute<part>(above, a.detach());
    auto z = distribute<samples_cut>(above, b.detach());
    x.requires_grad();
    z.requires_grad();
    sum(each(x) * x).backward();
    sum(batch(z) * z).backward();
    nn::sequential<channels_cut, nn::group_norm<2>, nn::instance_norm<affine, tracking>> ranges{above, seed{1}};
    const at::Tensor c = global_of({5, 6, 4}, numbers{4}).set_requires_grad(true);
    auto u = distribute<channels_cut>(above, c.detach());
    u.requires_grad();
    sum(ranges(u) * u).backward();
    if (!above.inside())
      return x.grad().local().numel() == 0 && z.grad().local().numel() == 0 && u.grad().local().numel() == 0;
    (at::instance_norm(at::group_norm(c, 2), {}, {}, {}, {}, true, 0, 1e-5, false) * c).sum().backward();
    const at::Tensor s = at::rms_norm(at::layer_norm(a, {5, 4}, {}, {}), {5, 4});
    (s * a).sum().backward();
    (at::batch_norm(b, {}, {}, {}, {}, true, 0, 1e-5, false) * b).sum().backward();
    return at::allclose(full_tensor(x.grad()), a.grad()) && at::allclose(full_tensor(z.grad()), b.grad()) &&
           at::allclose(full_tensor(u.grad()), c.grad());
  });
  INFO(run.errors());
  REQUIRE(run.well());
  for (const auto& r : run.results) CHECK(*r);
}

TEST_CASE("one value a channel is refused in training on all workers, and taken in eval", "[refusal]") {
  using single = tensor<partition<plane, whole, blocks<across>>, shape<samples, dim<4>>, double>;
  using narrow = nn::sequential<single, nn::batch_norm<>>;
  CHECK(refusals<plane>("tessera.layer.one_value", [](auto& t) {
          narrow{t, seed{1}}(distribute<single>(t, at::ones({1, 4}, at::kDouble)));
        }) == 6);
  CHECK(satisfied<plane>([](auto& t) {
          narrow net{t, seed{1}};
          net.eval();
          const at::Tensor x = global_of({1, 4}, numbers{3});
          return (full_tensor(net(distribute<single>(t, x))) - x / std::sqrt(1 + 1e-5))
                     .abs()
                     .max()
                     .template item<double>() < 1e-15;
        }) == 6);
}

TEST_CASE(
    "group and instance norms that are types, values and files are one, train as LibTorch's modules, and have their "
    "keys",
    "[gradient]") {
  using wide = tensor<images, shape<samples, dim<6>, dim<3>, dim<5>>, double>;
  using typed =
      nn::sequential<wide, nn::group_norm<3, eps<1, 1'000>>, nn::instance_norm<affine, tracking, momentum<1, 5>>,
                     nn::group_norm<2, no_affine>, nn::instance_norm<>>;
  const auto run = in_team<plane>([](auto& t) {
    nn::program p;
    p.output(p.input<wide>() | nn::group_norm_layer{.groups = 3, .eps = 1e-3} |
             nn::instance_norm_layer{.momentum = 0.2, .affine = true, .tracked = true} |
             nn::group_norm_layer{.groups = 2, .affine = false} | nn::instance_norm_layer{});
    typed one{t, seed{4}};
    nn::dynamic_network other{t, seed{4}, p};
    nn::program read;
    nn::read_network(read, R"({"inputs": [{"name": "x", "shape": ["samples", 6, 3, 5], "element": "double",
        "dims": [{"whole": true}, {"whole": true}, {"blocks": ["down"]}, {"blocks": ["across"]}]}],
      "nodes": [{"name": "a", "of": "x", "layer": "group_norm", "num_groups": 3, "eps": 0.001},
                {"name": "b", "of": "a", "layer": "instance_norm", "momentum": 0.2, "affine": true,
                 "track_running_stats": true},
                {"name": "c", "of": "b", "layer": "group_norm", "num_groups": 2, "affine": false}, {"name": "d",
                 "of": "c", "layer": "instance_norm"}],
      "outputs": "d"})",
                     t.mesh(), "norms.json");
    nn::dynamic_network file{t, seed{4}, read};
    auto w = nn::state_of(one);
    bool same = w.size() == 7 && nn::state_of(other).size() == 7;
    for (const char* key : {"0.weight", "0.bias", "1.weight", "1.bias"}) w.at(key).requires_grad_(true);
    for (const bool training : {true, true, false}) {
      one.train(training);
      other.train(training);
      file.train(training);
      const at::Tensor a = global_of({3, 6, 3, 5}, numbers{training ? 6u : 7u}).set_requires_grad(true);
      auto x = distribute<wide>(t, a.detach());
      x.requires_grad();
      const auto y = one(x);
      at::Tensor s =
          at::instance_norm(at::group_norm(a, 3, w.at("0.weight"), w.at("0.bias"), 1e-3, false), w.at("1.weight"),
                            w.at("1.bias"), w.at("1.running_mean"), w.at("1.running_var"), training, 0.2, 1e-5, false);
      s = at::instance_norm(at::group_norm(s, 2), {}, {}, {}, {}, true, 0, 1e-5, false);
      sum(tanh(y) * x).backward();
      (at::tanh(s) * a).sum().backward();
      same = same && at::equal(y.local(), other({x.dynamic()})[0].local()) &&
             at::equal(y.local(), file({x.dynamic()})[0].local()) &&
             at::allclose(full_tensor(y), s.detach(), 1e-12, 1e-12) &&
             at::allclose(full_tensor(x.grad()), a.grad(), 1e-11, 1e-11);
    }
    for (const auto& [key, value] : nn::state_of(one))
      same = same && at::allclose(value, w.at(key).detach(), 1e-12, 1e-12) &&
             at::equal(value, nn::state_of(other).at(key));
    return same;
  });
  INFO(run.errors());
  REQUIRE(run.well());
  for (const auto& r : run.results) CHECK(*r);
}

TEST_CASE(
    "one value a channel of a sample is refused in training, and groups that do not divide channels wherever they "
    "are",
    "[refusal]") {
  using single = tensor<partition<plane, whole, blocks<across>, whole>, shape<samples, dim<4>, dim<1>>, double>;
  CHECK(refusals<plane>("tessera.layer.one_value", [](auto& t) {
          nn::sequential<single, nn::instance_norm<>>{t,
                                                      seed{1}}(distribute<single>(t, at::ones({3, 4, 1}, at::kDouble)));
        }) == 6);
  CHECK(satisfied<plane>([](auto& t) {
          nn::sequential<single, nn::instance_norm<tracking>> net{t, seed{1}};
          net.eval();
          const at::Tensor x = global_of({3, 4, 1}, numbers{3});
          return (full_tensor(net(distribute<single>(t, x))) - x / std::sqrt(1 + 1e-5))
                     .abs()
                     .max()
                     .template item<double>() < 1e-15;
        }) == 6);
  for (const index_t groups : {0, 3, 5})
    CHECK(nn::group_norm_layer{.groups = groups}.plan(value_of<single>).why.is(code::groups_do_not_divide));
  CHECK(nn::group_norm_layer{.groups = 2}.plan(value_of<single>).why.ok());
}

namespace {

template <int R, int C>
struct dropping_net {
  struct up : axis<R> {};
  struct wide : axis<C> {};
  using grid = mesh<up, wide>;
  using image = tensor<partition<grid, blocks<wide>, whole, blocks<up>>, shape<dim<7>, dim<6>, dim<50>>, double>;
  struct model {
    constexpr auto operator()(auto x) const {
      const auto shared = x | nn::shared<struct twice, nn::dropout<>>{} | nn::shared<struct twice, nn::dropout<>>{};
      return flows{x | nn::dropout<probability<1, 4>>{}, x | nn::dropout<channelwise>{}, shared};
    }
  };
  struct keeping {
    constexpr auto operator()(auto x) const {
      return flows{x | nn::dropout<alpha, probability<1, 4>>{},
                   x | nn::dropout<alpha, channelwise, probability<1, 4>>{},
                   x | nn::dropout<alpha, probability<1, 1>>{}};
    }
  };

  // What stays of normal numbers, and the gradient of a sum of the first.
  static std::vector<at::Tensor> run_keeping() {
    const auto all = in_team<grid>([](auto& t) {
      nn::network<keeping, image> net{t, seed{6}};
      auto x = initial<image>(t, init::normal(), seed{4}, "x");
      std::vector<at::Tensor> seen{full_tensor(x)};
      x.requires_grad();
      const auto [elements, channels, none] = net(x);
      for (const auto& y : {elements.dynamic(), channels.dynamic(), none.dynamic()}) seen.push_back(full_tensor(y));
      sum(elements).backward();
      seen.push_back(full_tensor(x.grad()));
      net.eval();
      const auto [whole, also, all_of_it] = net(x);
      for (const auto& y : {whole.dynamic(), also.dynamic(), all_of_it.dynamic()})
        seen.push_back(full_tensor(y).detach());
      return seen;
    });
    INFO(all.errors());
    REQUIRE(all.well());
    return all.of(0);
  }

  // What stays of ones: two calls that train, one that does not.
  static std::vector<at::Tensor> run() {
    const auto all = in_team<grid>([](auto& t) {
      nn::network<model, image> net{t, seed{6}};
      std::vector<at::Tensor> seen;
      auto x = distribute<image>(t, at::ones({7, 6, 50}, at::kDouble));
      x.requires_grad();
      const auto look = [&] {
        const auto [elements, channels, twice] = net(x);
        for (const auto& y : {elements.dynamic(), channels.dynamic(), twice.dynamic()}) seen.push_back(full_tensor(y));
        return elements;
      };
      sum(look()).backward();
      seen.push_back(full_tensor(x.grad()));
      look();
      net.eval();
      look();
      return seen;
    });
    INFO(all.errors());
    REQUIRE(all.well());
    return all.of(0);
  }
};

}  // namespace

TEST_CASE("dropout draws the same on any partition, anew at every call and place, and nothing in eval", "[runtime]") {
  const std::vector<at::Tensor> one = dropping_net<1, 1>::run();
  for (const auto& other : {dropping_net<2, 3>::run(), dropping_net<4, 1>::run()})
    for (std::size_t i = 0; i < one.size(); ++i) CHECK(at::equal(one[i], other[i]));
  const auto share = [](const at::Tensor& x) { return (x != 0).to(at::kDouble).mean().item<double>(); };
  CHECK(std::abs(share(one[0]) - 0.75) < 0.03);
  CHECK(std::abs(share(one[1]) - 0.5) < 0.25);
  CHECK(std::abs(share(one[2]) - 0.25) < 0.03);
  CHECK(at::equal(one[0], (one[0] != 0).to(at::kDouble) / 0.75));
  CHECK(at::equal(one[1], one[1].select(2, 0).unsqueeze(2).expand({7, 6, 50})));
  CHECK(at::equal(one[3], one[0]));
  for (const std::size_t i : {0, 1, 2}) {
    CHECK_FALSE(at::equal(one[i], one[i + 4]));
    CHECK(at::equal(one[i + 7], at::ones({7, 6, 50}, at::kDouble)));
  }
}

TEST_CASE(
    "an alpha dropout is LibTorch's affine map of what its mask keeps, the same on any partition, and keeps mean and "
    "variance",
    "[runtime]") {
  const std::vector<at::Tensor> one = dropping_net<1, 1>::run_keeping();
  for (const auto& other : {dropping_net<2, 3>::run_keeping(), dropping_net<4, 1>::run_keeping()})
    for (std::size_t i = 0; i < one.size(); ++i) CHECK(at::equal(one[i], other[i]));
  constexpr double p = 0.25;
  constexpr double least = -1.7580993408473766;
  const double a = 1 / std::sqrt((least * least * p + 1) * (1 - p));
  const double b = -a * least * p;
  const at::Tensor& x = one[0];
  for (const std::size_t i : {1, 2}) {
    const at::Tensor kept = (one[i] - (a * x + b)).abs() < 1e-14;
    CHECK(at::allclose(one[i], at::where(kept, a * x + b, a * least + b), 1e-14, 1e-14));
    CHECK(std::abs(kept.to(at::kDouble).mean().item<double>() - (1 - p)) < (i == 1 ? 0.03 : 0.2));
    if (i == 2) CHECK(at::equal(kept, kept.select(2, 0).unsqueeze(2).expand_as(kept)));
    if (i == 1) CHECK(at::allclose(one[4], a * kept.to(at::kDouble), 1e-14, 1e-14));
  }
  CHECK(std::abs(x.mean().item<double>() - one[1].mean().item<double>()) < 0.06);
  CHECK(std::abs(one[1].var().item<double>() / x.var().item<double>() - 1) < 0.1);
  CHECK(at::equal(one[3], at::zeros_like(x)));
  for (const std::size_t i : {5, 6, 7}) CHECK(at::equal(one[i], x));  // where it does not train
  // LibTorch's goes there too
  CHECK(at::allclose(at::alpha_dropout(x, 0.999999999, true), at::full_like(x, 0), 1, 1e-3));
  tensor_value terms{value_of<typename dropping_net<2, 3>::image>.layout, element::float64};
  for (axis_placement& r : terms.layout.placements) r = {placement::partial};
  CHECK(nn::dropout_layer{}.plan(terms).why.ok());
  CHECK(nn::dropout_layer{.alpha = true}.plan(terms).why.is(code::nonlinear_on_partial));
}

}  // namespace tessera::testing::of_normalisation
