#include "tests/support/tensors.hpp"

#include <torch/optim/sgd.h>

using namespace tessera;
using namespace tessera::engine;
using namespace tessera::testing;

// Modules against the serial network: skips, branches, tied weights, several inputs and results, one program for all
// extents.

namespace {

struct images_at_once : dyn {};

template <int R, int C>
struct residual_net {
  struct up : axis<R> {};
  struct across : axis<C> {};
  using grid = mesh<up, across>;
  using image = tensor<partition<grid, whole, whole, blocks<up>, blocks<across>>,
                       shape<images_at_once, dim<2>, dim<7>, dim<6>>, double>;
  using features = tensor<partition<grid, whole, blocks<up, across>>, shape<images_at_once, dim<5>>, double>;
  using channels = partition<grid, whole, blocks<up, across>, whole, whole>;
  template <index_t Out>
  using three = nn::conv<Out, kernel<3, 3>, padding<1, 1>>;

  template <index_t Out>
  struct block {
    constexpr auto operator()(auto x) const {
      const auto y = x | three<Out>{} | nn::relu{} | three<Out>{};
      return relu((x | nn::named<struct skip, nn::conv<Out, kernel<1, 1>>>{}) + y);
    }
  };
  // Two blocks, the head of each, and a second operand that joins behind: two results.
  struct model {
    constexpr auto operator()(auto x, auto extra) const {
      const auto first = x | block<3>{};
      const auto second = first | nn::named<struct deep, block<4>>{};
      const auto flat = second | nn::max_pool<kernel<2, 2>>{} | nn::repartition<channels>{} | nn::flatten{};
      const auto hidden = ((flat | nn::linear<5>{}) * 0.5 + tanh(extra)) |
                          nn::shared<struct tied, nn::chain<nn::linear<5>>>{} | nn::relu{};
      return flows{hidden | nn::shared<struct tied, nn::chain<nn::linear<5>>>{}, first};
    }
  };
  using net = nn::network<model, image, features>;
};

using by_key = std::map<std::string, at::Tensor>;

at::Tensor serial_block(const at::Tensor& x, const by_key& w, const std::string& at) {
  const auto conv = [&](const at::Tensor& in, const std::string& key, index_t pad) {
    return at::conv2d(in, w.at(at + key + ".weight"), w.at(at + key + ".bias"), at::IntArrayRef({1, 1}),
                      at::IntArrayRef({pad, pad}));
  };
  return at::relu(conv(x, "skip", 0) + conv(at::relu(conv(x, "0", 1)), "2", 1));
}

std::pair<at::Tensor, at::Tensor> serial_model(const at::Tensor& x, const at::Tensor& extra, const by_key& w) {
  const auto linear = [&](const at::Tensor& in, const std::string& key) {
    return at::linear(in, w.at(key + ".weight"), w.at(key + ".bias"));
  };
  const at::Tensor first = serial_block(x, w, "0.");
  const at::Tensor second = serial_block(first, w, "deep.");
  const at::Tensor flat = at::max_pool2d(second, {2, 2}).flatten(1);
  return {linear(at::relu(linear(linear(flat, "3") * 0.5 + extra.tanh(), "tied.0")), "tied.0"), first};
}

/// How far a few steps are from the serial ones, and whether tied weights are one.
template <class N>
double distance_of_training(const team<typename N::grid>& workers, bool clones) {
  typename N::net made{workers, seed{5}};
  typename N::net net = clones ? made.clone() : std::move(made);
  by_key w;
  std::vector<at::Tensor> leaves;
  for (const auto& [key, t] : nn::state_of(net)) leaves.push_back(w[key] = t.clone().requires_grad_(true));
  const torch::optim::SGDOptions options = torch::optim::SGDOptions(0.05).momentum(0.9);
  torch::optim::SGD ours(net.parameters(), options);
  torch::optim::SGD theirs(leaves, options);
  double worst = net.parameters().size() == leaves.size() && leaves.size() == 16 ? 0 : 1;
  const auto judge = [&](const at::Tensor& a, const at::Tensor& b) {
    worst = std::max(worst, (a - b).abs().max().template item<double>());
  };
  for (int step = 0; step < 3; ++step) {
    const index_t n = step == 1 ? 4 : 2;
    const at::Tensor image = global_of({n, 2, 7, 6}, numbers{static_cast<std::uint64_t>(step)}).set_requires_grad(true);
    const at::Tensor extra = global_of({n, 5}, numbers{static_cast<std::uint64_t>(step + 9)}).set_requires_grad(true);
    ours.zero_grad();
    theirs.zero_grad();
    auto x = distribute<typename N::image>(workers, image.detach());
    auto e = distribute<typename N::features>(workers, extra.detach());
    x.requires_grad();
    e.requires_grad();
    const auto [y, z] = net(x, e);
    const auto [serial_y, serial_z] = serial_model(image, extra, w);
    const auto together = sum(y * y);
    together.backward(true);
    sum(z * z).backward();
    (serial_y * serial_y).sum().backward({}, true);
    (serial_z * serial_z).sum().backward();
    judge(full_tensor(y), serial_y.detach());
    judge(full_tensor(z), serial_z.detach());
    judge(full_tensor(x.grad()), image.grad());
    judge(full_tensor(e.grad()), extra.grad());
    ours.step();
    theirs.step();
  }
  for (const auto& [key, t] : nn::state_of(net)) judge(t, w.at(key));
  return worst;
}

template <class N>
void judge_residual(bool clones = false) {
  const auto run = in_team<typename N::grid>([&](auto& t) { return distance_of_training<N>(t, clones); });
  INFO(run.errors());
  REQUIRE(run.well());
  for (const auto& r : run.results) CHECK(*r < 1e-12);
}

/// A layer that keeps what it was told.
struct watching {
  static constexpr const char* name = "watching";
  static thread_local inline bool training;
  static constexpr layer_plan plan(const tensor_value& x) { return nn::relu::plan(x); }
  static at::Tensor forward(const nn::call& c) {
    training = c.training;
    return at::relu(c.operand());
  }
};

struct twofold : axis<2> {};
using duo = mesh<twofold>;
using short_rows = tensor<partition<duo, blocks<twofold>, whole>, shape<images_at_once, dim<4>>, double>;

// Tied under one name, but of other shapes.
struct misshapen {
  constexpr auto operator()(auto x) const {
    return x | nn::shared<struct table, nn::linear<4>>{} | nn::shared<struct table, nn::linear<3>>{};
  }
};
struct twice_named {
  constexpr auto operator()(auto x) const {
    return x | nn::named<struct table, nn::linear<4>>{} | nn::named<struct table, nn::linear<4>>{};
  }
};

// Functions of tensors on flows: with numbers, with exchanges of their own, over whole and cut dimensions.
struct across_here : axis<3> {};
using both_cut = tensor<partition<mesh<twofold, across_here>, blocks<twofold>, blocks<across_here>>,
                        shape<images_at_once, dim<5>>, double>;
struct formula {
  constexpr auto operator()(auto x, auto y) const {
    const auto p = softmax<1>(x * 3 - y);
    const auto spread = shifted(var<1>(p, 0) + norm<1>(p, 3) - detached(p));
    return flows{clamp_min(p + x, -0.25), spread};
  }
  static constexpr auto shifted(auto x) { return relu(x) + 0.5; }
  static constexpr auto detached(auto x) { return where(eq(argmax<1>(x), 0), norm<1>(x, 1), norm<1>(x, 1) / 2); }
};

// An affine map of its own: a scale, cut as the features are, that begins as draws, and a shift that begins as zeros,
// for another mesh too.
struct drawn {
  static constexpr initial_value initial = init::uniform(1, 2);
};
struct affine_map {
  using features = tensor<partition<mesh<twofold, across_here>, blocks<across_here>>, shape_of<5>, double>;
  constexpr auto operator()(auto x) const {
    const auto factors = x | nn::named<struct scale, nn::weight<features, drawn>>{};
    const auto offsets = x | nn::named<struct shift, nn::weight<features>>{};
    return x * factors + offsets;
  }
};

// Takes off the mean over all samples, which its workers sum in double, and keeps a running one: y = (x − mean x) · w.
struct centred {
  static constexpr const char* name = "centred";
  static constexpr layer_plan plan(const tensor_value& x) {
    layer_plan p;
    p.add_input(x.layout);
    p.add_output(x.layout);
    layout sums;
    sums.mesh = x.layout.mesh;
    sums.dims.push(x.layout.dims[1]);
    for (const axis_placement& r : x.layout.placements)
      sums.placements.push(r.kind == placement::cut && r.dimension == 1
                               ? axis_placement{placement::cut, 0, r.level, r.joined}
                               : axis_placement{placement::partial});
    layout means = sums;
    for (axis_placement& r : means.placements)
      if (r.kind == placement::partial) r = {};
    p.add_exchange(sums, means, element::float64);
    p.add_parameter({"weight", stored_form(means), means, init::uniform(1, 2), true, element::float32});
    p.add_buffer({"running_mean", stored_form(means), init::constant(3), element::float64});
    return p;
  }
  static at::Tensor forward(const nn::call& c) {
    const at::Tensor& x = c.operand();
    const index_t samples = c.bound.inputs[0].to->layout().dims[0].extent;
    const at::Tensor mean =
        c.training ? c.exchanged(x.to(at::kDouble).sum(0)) / static_cast<double>(samples) : c.buffer(0).value();
    if (c.training) c.buffer(0).set(0.75 * c.buffer(0).value() + 0.25 * mean);
    return (x - mean) * c.weight(0).to(at::kDouble);
  }
};
using squares_cut =
    tensor<partition<mesh<twofold, across_here>, blocks<twofold>, blocks<across_here>>, shape<dim<7>, dim<5>>, double>;
using centring = nn::sequential<squares_cut, centred>;
// Five sums of 8 bytes: of two workers along the samples each gets the terms of the other; their cotangents go the same
// way, and those of five weights of 4 bytes.
static_assert(traffic<centring>().forward.bytes == 2 * 5 * 8 &&
              traffic<centring>().backward.bytes == 2 * 5 * 8 + 2 * 5 * 4);

// Verbs on flows, and an operation of one's own that looks where its box lies.
constexpr auto weighed = operation("nf->nf").linear();
constexpr auto multiplied = operation("nf,nf->nf").multilinear();
at::Tensor times_each_other(const at::Tensor& a, const at::Tensor& b) { return a * b; }
struct by_verbs {
  using plane = mesh<twofold, across_here>;
  constexpr auto operator()(auto x) const {
    const auto rows = all_gather<partition<plane, blocks<twofold>, whole>>(x);
    const auto heavy = tessera::apply<weighed>(
        [](const local_boxes& where, const at::Tensor& a) {
          return a * at::arange(where.operands[0].first(1), where.operands[0].first(1) + where.operands[0].size(1));
        },
        to<partition<plane, whole, blocks<across_here, twofold>>>(rows));
    const auto back = tessera::repartition<partition<plane, blocks<twofold>, blocks<across_here>>>(heavy);
    return tessera::apply<multiplied, &times_each_other>(back, concat<1>(x, x) | nn::slice<1, 5, 10>{});
  }
};

// Each pixel four times, each image's mean: over two dimensions cut unevenly.
constexpr auto twice_as_large = operation("nchw->nchw").scaled('h', 2).scaled('w', 2).linear();
using cut_image = tensor<partition<mesh<twofold, across_here>, whole, whole, blocks<twofold>, blocks<across_here>>,
                         shape<images_at_once, dim<2>, dim<3>, dim<4>>, double>;
struct enlarging {
  constexpr auto operator()(auto x) const {
    const auto y = tessera::apply<twice_as_large>(
        [](const at::Tensor& a) { return a.repeat_interleave(2, 2).repeat_interleave(2, 3); }, x);
    return flows{square(y) | nn::global_avg_pool{}, y};
  }
};

}  // namespace

TEST_CASE("a layer has exchanges between its local operations, buffers, and parameters of another element",
          "[gradient]") {
  using plane = mesh<twofold, across_here>;
  const auto run = in_team<plane>([](auto& t) {
    centring net{t, seed{1}};
    auto state = nn::state_of(net);
    const at::Tensor w = state.at("0.weight").clone().requires_grad_(true);
    at::Tensor running = at::full({5}, 3, at::kDouble);
    double worst = net.parameters().size() == 1 && state.size() == 2 && w.scalar_type() == at::kFloat ? 0 : 1;
    const auto judge = [&](const at::Tensor& mine, const at::Tensor& serial) {
      worst = std::max(worst, (mine - serial).abs().max().template item<double>());
    };
    judge(state.at("0.running_mean"), running);
    for (int step = 0; step < 3; ++step) {
      const at::Tensor a = global_of({7, 5}, numbers{static_cast<std::uint64_t>(step)}).set_requires_grad(true);
      auto x = distribute<squares_cut>(t, a.detach());
      x.requires_grad();
      net.train(step < 2);
      const auto y = net(x);
      const at::Tensor mean = step < 2 ? a.mean(0) : running;
      if (step < 2) running = 0.75 * running + 0.25 * mean.detach();
      const at::Tensor serial = (a - mean) * w.to(at::kDouble);
      sum(y * y).backward();
      (serial * serial).sum().backward();
      judge(full_tensor(y), serial.detach());
      judge(full_tensor(x.grad()), a.grad());
      judge(nn::state_of(net).at("0.running_mean"), running);
    }
    centring copy = net.clone();
    state = nn::state_of(net);
    state.at("0.running_mean").fill_(9);
    nn::assign(net, state);
    judge(nn::state_of(copy).at("0.running_mean"), running);
    judge(nn::state_of(net).at("0.running_mean"), at::full({5}, 9, at::kDouble));
    return worst;
  });
  INFO(run.errors());
  REQUIRE(run.well());
  for (const auto& r : run.results) CHECK(*r < 1e-12);
}

TEST_CASE("images grow by an operation, and are averaged, where they lie", "[gradient]") {
  const auto run = in_team<mesh<twofold, across_here>>([](auto& t) {
    const nn::network<enlarging, cut_image> net{t, seed{1}};
    double worst = 0;
    for (const index_t n : {2, 0}) {
      const at::Tensor a = global_of({n, 2, 3, 4}, numbers{3}).set_requires_grad(true);
      auto x = distribute<cut_image>(t, a.detach());
      x.requires_grad();
      const auto [mean, large] = net(x);
      const at::Tensor serial_large = a.repeat_interleave(2, 2).repeat_interleave(2, 3);
      const at::Tensor serial_mean = serial_large.square().mean(at::IntArrayRef{2, 3}, true);
      sum(mean * mean).backward(true);
      sum(large * large).backward();
      (serial_mean * serial_mean).sum().backward({}, true);
      (serial_large * serial_large).sum().backward();
      const auto judge = [&](const at::Tensor& mine, const at::Tensor& serial) {
        if (mine.sizes() != serial.sizes()) worst = 1;
        else if (mine.numel() > 0) worst = std::max(worst, (mine - serial).abs().max().template item<double>());
      };
      judge(full_tensor(mean), serial_mean.detach());
      judge(full_tensor(large), serial_large.detach());
      judge(full_tensor(x.grad()), a.grad());
    }
    return worst;
  });
  INFO(run.errors());
  REQUIRE(run.well());
  for (const auto& r : run.results) CHECK(*r < 1e-12);
}

TEST_CASE("verbs and operations of one's own are nodes of a module", "[gradient]") {
  const auto run = in_team<by_verbs::plane>([](auto& t) {
    const nn::network<by_verbs, both_cut> net{t, seed{1}};
    double worst = 0;
    for (const index_t n : {3, 1}) {
      const at::Tensor a = global_of({n, 5}, numbers{3}).set_requires_grad(true);
      auto x = distribute<both_cut>(t, a.detach());
      x.requires_grad();
      const auto y = net(x);
      const at::Tensor serial = a * at::arange(5) * a;
      if (!at::equal(full_tensor(tessera::apply<multiplied, &times_each_other>(x, x)), a * a)) worst = 1;
      sum(y * y).backward();
      (serial * serial).sum().backward();
      worst = std::max({worst, (full_tensor(y) - serial.detach()).abs().max().template item<double>(),
                        (full_tensor(x.grad()) - a.grad()).abs().max().template item<double>()});
    }
    return worst;
  });
  INFO(run.errors());
  REQUIRE(run.well());
  for (const auto& r : run.results) CHECK(*r < 1e-12);
}

TEST_CASE("a module has parameters of its own, under names, that begin as it says", "[gradient]") {
  const auto run = in_team<mesh<twofold, across_here>>([](auto& t) {
    const nn::network<affine_map, both_cut> net{t, seed{1}};
    const auto state = nn::state_of(net);
    double worst = state.size() == 2 && state.at("scale").min().template item<double>() >= 1 &&
                           state.at("shift").abs().max().template item<double>() == 0
                       ? 0
                       : 1;
    const at::Tensor w = state.at("scale").clone().requires_grad_(true);
    const at::Tensor b = state.at("shift").clone().requires_grad_(true);
    const at::Tensor a = global_of({3, 5}, numbers{3});
    const auto y = net(distribute<both_cut>(t, a));
    sum(y * y).backward();
    (a * w + b).square().sum().backward();
    net.each_parameter([&](const nn::parameter& p) {
      const tensor<dyn> g(p.stored().team(), cotangent(p.stored().layout()), p.stored().local().grad());
      worst =
          std::max(worst, (full_tensor(g) - (p.path() == "scale" ? w : b).grad()).abs().max().template item<double>());
    });
    return worst;
  });
  INFO(run.errors());
  REQUIRE(run.well());
  for (const auto& r : run.results) CHECK(*r < 1e-12);
}

TEST_CASE("functions of tensors are nodes of a module, numbers and exchanges included", "[gradient]") {
  using plane = mesh<twofold, across_here>;
  const auto run = in_team<plane>([](auto& t) {
    const nn::network<formula, both_cut, both_cut> net{t, seed{1}};
    double worst = 0;
    for (const index_t n : {3, 1}) {
      const at::Tensor a = global_of({n, 5}, numbers{3}).set_requires_grad(true);
      const at::Tensor b = global_of({n, 5}, numbers{4}).set_requires_grad(true);
      auto x = distribute<both_cut>(t, a.detach());
      auto y = distribute<both_cut>(t, b.detach());
      x.requires_grad();
      y.requires_grad();
      const auto [values, spread] = net(x, y);
      const at::Tensor p = at::softmax(a * 3 - b, 1);
      const at::Tensor serial_values = at::clamp_min(p + a, -0.25);
      const at::Tensor serial_one = p.abs().sum(1);
      const at::Tensor serial_sizes = p.var(1, false) + at::linalg_vector_norm(p, 3, at::IntArrayRef{1}) -
                                      at::where(p.argmax(1) == 0, serial_one, serial_one / 2);
      const at::Tensor serial_spread = at::relu(serial_sizes) + 0.5;
      sum(values * values).backward(true);
      sum(spread * spread).backward();
      (serial_values * serial_values).sum().backward({}, true);
      (serial_spread * serial_spread).sum().backward();
      const auto judge = [&](const at::Tensor& mine, const at::Tensor& serial) {
        worst = std::max(worst, (mine - serial).abs().max().template item<double>());
      };
      judge(full_tensor(values), serial_values.detach());
      judge(full_tensor(spread), serial_spread.detach());
      judge(full_tensor(x.grad()), a.grad());
      judge(full_tensor(y.grad()), b.grad());
    }
    return worst;
  });
  INFO(run.errors());
  REQUIRE(run.well());
  for (const auto& r : run.results) CHECK(*r < 1e-12);
}

TEST_CASE("a module with skips, tied weights, two operands and two results trains as the serial one, on any partition",
          "[gradient]") {
  judge_residual<residual_net<1, 1>>();
  judge_residual<residual_net<2, 2>>();
  judge_residual<residual_net<3, 1>>();
  judge_residual<residual_net<1, 4>>(true);
}

TEST_CASE("layers are told whether the network trains, and a module alone is a network", "[runtime]") {
  const auto run = in_team<duo>([](auto& t) {
    nn::network<watching, short_rows> net{t, seed{1}};
    const auto x = distribute<short_rows>(t, at::ones({3, 4}, at::kDouble));
    net(x);
    bool right = watching::training;
    net.eval();
    net(x.dynamic());
    return right && !watching::training && net.parameters().empty();
  });
  INFO(run.errors());
  REQUIRE(run.well());
  for (const auto& r : run.results) CHECK(*r);
}

TEST_CASE("parts that are shared but of other shapes, and keys that stand twice, are refused on all workers",
          "[refusal]") {
  CHECK(refusals<duo>("tessera.network.shared", [](auto& t) { nn::network<misshapen, short_rows>(t, seed{1}); }) == 2);
  CHECK(refusals<duo>("tessera.network.keys", [](auto& t) { nn::network<twice_named, short_rows>(t, seed{1}); }) == 2);
}
