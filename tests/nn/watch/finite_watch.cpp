#include "tests/support/tensors.hpp"

#include <tessera/nn/watch/finite_watch.hpp>

// What a watch finds first of results, gradients and parameters that are not finite, and that every worker is told the
// same.

namespace tessera::testing::finite_watching {
namespace {

struct samples : axis<2> {};
struct features : axis<2> {};
using watched_mesh = mesh<samples, features>;
struct rows : dyn {};
using watched_rows =
    tensor<partition<watched_mesh, blocks<samples>, whole, invariant<features>>, shape<rows, dim<5>>, double>;

struct two_layers {
  constexpr auto operator()(auto x) const { return tanh(x | nn::linear<6>{}) | nn::linear<3>{}; }
};
/// The same run again for its backward, with its first layer's features cut.
struct again {
  constexpr auto operator()(auto x) const {
    return x | nn::recompute<nn::chain<nn::linear<6, cut_out<features>>, nn::relu>>{} | nn::linear<3>{};
  }
};
/// A square root, whose gradient at zero is infinite.
struct rooted {
  constexpr auto operator()(auto x) const {
    return sqrt(x | nn::linear<6>{} | nn::relu{}) | nn::named<struct last, nn::linear<3>>{};
  }
};
struct one_layer {
  constexpr auto operator()(auto x) const { return x | nn::linear<3>{}; }
};

template <class Module>
using net_of = nn::network<Module, watched_rows>;

const double infinity = std::numeric_limits<double>::infinity();
const double none = std::numeric_limits<double>::quiet_NaN();

/// Rows of sines, with a number at one place.
at::Tensor rows_with(double value, std::int64_t row = 0, std::int64_t column = 0) {
  at::Tensor x = at::arange(35, at::kDouble).sin().view({7, 5});
  x[row][column] = value;
  return x;
}

auto given(const auto& t, const at::Tensor& x) { return distribute<watched_rows>(t, x); }

/// Puts a number at the local place `at` of a parameter that must be there, or everywhere in it.
void put(const nn::engine::executor& net, const std::string& path, std::int64_t at, double value) {
  const at::NoGradGuard no_graph;
  bool there = false;
  net.each_parameter([&](const nn::parameter& p) {
    if (p.path() != path) return;
    there = true;
    if (at < 0) p.stored().local().fill_(value);
    else p.stored().local().view(-1)[at] = value;
  });
  if (!there) throw std::runtime_error("no parameter " + path);
}

/// What a watch tells each worker of what step(team, net, watch) does.
template <class Module, class Step>
auto found_in(const Step& step, nn::finite_watch::counted which = nn::finite_watch::counted::all) {
  return in_team<watched_mesh>([&](team<watched_mesh>& t) {
    net_of<Module> net{t, seed{5}};
    const auto watch = std::make_shared<nn::finite_watch>(t, which);
    net.observe(watch);
    step(t, net, *watch);
    return watch->first();
  });
}

/// What all workers are told; one that finds nothing where they are not.
template <class Run>
nn::finite_watch::finding alike(const Run& run) {
  INFO(run.errors());
  REQUIRE(run.well());
  for (const auto& r : run.results) {
    REQUIRE(r->has_value());
    CHECK((*r)->words() == (*run.of(0)).words());
  }
  return *run.of(0);
}

TEST_CASE("a number that came in is found in the first layer, on the workers that have its row", "[runtime]") {
  const auto found =
      alike(found_in<two_layers>([](auto& t, auto& net, auto&) { net(given(t, rows_with(none, 5, 2))); }));
  CHECK(found.path == "0");
  CHECK(found.name == "linear");
  CHECK(found.tensor == "result 0");
  CHECK_FALSE(found.backward);
  CHECK(found.because == "operand 0");
  CHECK(found.count == 6);                           // of one row
  CHECK(found.first == std::vector<index_t>{5, 0});  // in the global tensor
  CHECK(found.workers == std::vector<int>{2, 3});
  CHECK(found.words() ==
        "0 (linear): result 0, 6 elements, the first at [5, 0], on workers 2 3; operand 0 was so before");
}

TEST_CASE("a parameter is named where what it gives is found", "[runtime]") {
  const auto found = alike(found_in<two_layers>([](auto& t, auto& net, auto&) {
    put(net, "1.weight", 3, infinity);
    net(given(t, rows_with(0.5)));
  }));
  CHECK(found.path == "1");
  CHECK(found.because == "1.weight");
  CHECK(found.workers == std::vector<int>{0, 1, 2, 3});
}

TEST_CASE("of cut features the worker is told that has them", "[runtime]") {
  const auto found = alike(found_in<again>([](auto& t, auto& net, auto&) {
    if (t.rank() % 2 == 1) put(net, "0.0.bias", 1, none);  // of features 3, 4, 5
    net(given(t, rows_with(0.5)));
  }));
  CHECK(found.path == "0.0");
  CHECK(found.because == "0.0.bias");
  CHECK(found.first == std::vector<index_t>{0, 4});
  CHECK(found.count == 4);
  CHECK(found.workers == std::vector<int>{1, 3});
}

TEST_CASE("the layer that makes a gradient infinite is named, not the one before it", "[runtime]") {
  const auto found = alike(found_in<rooted>([](auto& t, auto& net, auto&) {
    const auto y = net(given(t, rows_with(0.5)));
    torch::autograd::backward({y.local()}, {at::ones_like(y.local())});
  }));
  CHECK(found.backward);
  CHECK(found.name == "sqrt");
  CHECK(found.tensor == "gradient of operand 0");
  CHECK(found.because == "");
}

TEST_CASE("a gradient that came from behind the network is told of the last layer's result", "[runtime]") {
  const auto found = alike(found_in<two_layers>([](auto& t, auto& net, auto&) {
    const auto y = net(given(t, rows_with(0.5)));
    at::Tensor g = at::ones_like(y.local());
    if (t.rank() >= 2) g[1][2] = none;  // two copies
    torch::autograd::backward({y.local()}, {g});
  }));
  CHECK(found.path == "1");
  CHECK(found.tensor == "gradient of result 0");
  CHECK(found.first == std::vector<index_t>{5, 2});
  CHECK(found.workers == std::vector<int>{2, 3});
}

TEST_CASE("a parameter's gradient that overflows is found, in the first step and in later ones", "[runtime]") {
  for (const int before : {0, 2}) {
    const auto found = alike(found_in<one_layer>([&](auto& t, auto& net, auto&) {
      const auto step = [&](double value, double gradient) {
        const auto y = net(given(t, rows_with(value)));
        torch::autograd::backward({y.local()}, {at::full_like(y.local(), gradient)});
      };
      for (int k = 0; k < before; ++k) step(0.5, 1);
      step(1e200, 1e200);
    }));
    CHECK(found.path == "0");
    CHECK(found.tensor == "gradient of 0.weight");
    CHECK(found.first == std::vector<index_t>{0, 0});
    CHECK(found.workers == std::vector<int>{0, 1, 2, 3});  // it is the sum over all samples
  }
}

TEST_CASE("of a part that runs again gradients are seen too", "[runtime]") {
  const auto found = alike(found_in<again>([](auto& t, auto& net, auto&) {
    const auto y = net(given(t, rows_with(1e200, 6, 0)));
    torch::autograd::backward({y.local()}, {at::full_like(y.local(), 1e200)});
  }));
  CHECK(found.backward);
  CHECK(found.tensor == "gradient of 1.weight");
  const auto inside = alike(found_in<again>([](auto& t, auto& net, auto&) {
    put(net, "1.weight", -1, 1e100);
    const auto y = net(given(t, rows_with(1e200, 6, 0)));
    torch::autograd::backward({y.local()}, {at::full_like(y.local(), 1e90)});
  }));
  CHECK(inside.backward);
  CHECK(inside.path == "0.0");
  CHECK(inside.tensor == "gradient of 0.0.weight");
}

/// Layers whose parameters are stored as tiles.
template <gathering Times>
struct tiled {
  constexpr auto operator()(auto x) const {
    return x | nn::sharded_over<nn::chain<nn::linear<6>, nn::relu, nn::recompute<nn::linear<6>>, nn::linear<3>>,
                                samples, gathered<Times>>{};
  }
};

template <gathering Times>
void watches_tiles() {
  const auto run = in_team<watched_mesh>([](team<watched_mesh>& t) {
    net_of<tiled<Times>> net{t, seed{5}}, beside{t, seed{5}};
    const auto watch = std::make_shared<nn::finite_watch>(t);
    net.observe(watch);
    const auto gradients = [&](const auto& of, double value) {
      const auto y = of(given(t, rows_with(value)));
      torch::autograd::backward({y.local()}, {at::ones_like(y.local())});
      nn::reduce_gradients(of);
      std::vector<at::Tensor> all;
      for (const at::Tensor& w : of.parameters()) {
        all.push_back(w.grad().clone());
        w.mutable_grad().reset();
      }
      return all;
    };
    bool same = true;
    for (const double value : {0.5, 2.0}) {
      const auto one = gradients(net, value), other = gradients(beside, value);
      for (std::size_t i = 0; i < one.size(); ++i) same = same && one[i].equal(other[i]);
    }
    watch->look_at(net);
    watch->check();
    gradients(net, none);
    return std::make_pair(same, watch->first()->words());
  });
  INFO(run.errors());
  REQUIRE(run.well());
  for (const auto& r : run.results) {
    CHECK(r->first);
    CHECK(r->second ==
          "0.0 (linear): result 0, 6 elements, the first at [0, 0], on workers 0 1; operand 0 was so before");
  }
}

TEST_CASE("gradients of tiles are those of an unwatched network, to the bit, however long they are gathered",
          "[runtime]") {
  watches_tiles<gathering::once>();
  watches_tiles<gathering::twice>();
  watches_tiles<gathering::held>();
}

TEST_CASE("parameters, buffers and the gradients that are there can be looked at", "[runtime]") {
  const auto found = alike(found_in<two_layers>([](auto&, auto& net, auto& watch) {
    watch.look_at(net);
    if (watch.first()) throw std::runtime_error("nothing is wrong yet");
    put(net, "1.bias", 0, 0);
    put(net, "0.weight", 3, none);
    watch.look_at(net);
  }));
  CHECK(found.words() == "0.weight: parameter, 1 elements, the first at [0, 3], on workers 0 1 2 3");
  const auto gradient = alike(found_in<two_layers>([](auto& t, auto& net, auto& watch) {
    net.each_parameter([&](const nn::parameter& p) {
      p.stored().local().mutable_grad() = at::full_like(p.stored().local(), t.rank() == 1 ? infinity : 0);
    });
    watch.look_at(net);
  }));
  CHECK(gradient.words() == "0.weight: gradient, 30 elements, the first at [0, 0], on worker 1");
}

TEST_CASE("infinities count only where that is said, and what was found is kept until it is cleared", "[runtime]") {
  const auto found = alike(found_in<two_layers>(
      [](auto& t, auto& net, auto& watch) {
        put(net, "0.bias", 3, infinity);  // tanh makes it 1
        net(given(t, rows_with(0.5)));
        if (watch.first()) throw std::runtime_error("infinities do not count");
        put(net, "1.bias", 1, none);
        net(given(t, rows_with(0.5)));
        net(given(t, rows_with(none)));
        if (watch.first()->path != "1") throw std::runtime_error("the first counts");
        watch.clear();
        if (watch.first()) throw std::runtime_error("it is forgotten");
        net(given(t, rows_with(none)));
      },
      nn::finite_watch::counted::nan));
  CHECK(found.path == "0");
}

TEST_CASE("what is found is one error with its code on every worker, and what is not moves nothing more",
          "[refusal][runtime]") {
  const auto run = in_team<watched_mesh>([&](team<watched_mesh>& t) {
    net_of<again> net{t, seed{5}};
    const auto step = [&](double value) {
      const auto before = t.state()->total;
      const auto y = net(given(t, rows_with(value)));
      torch::autograd::backward({y.local()}, {at::ones_like(y.local())});
      return t.state()->total.messages - before.messages;
    };
    step(1);
    const auto alone = step(1);
    const auto watch = std::make_shared<nn::finite_watch>(t);
    net.observe(watch);
    const bool same = step(1) == alone;
    const std::string well = told([&] { watch->check(); });
    step(none);
    return std::make_tuple(same, well, told([&] { watch->check(); }));
  });
  REQUIRE(run.well());
  for (const auto& r : run.results) CHECK(*r == std::make_tuple(true, "none", "tessera.watch.finite"));
}

}  // namespace
}  // namespace tessera::testing::finite_watching

namespace watched_windows {

using namespace tessera;
using namespace tessera::testing;

struct data : axis<2> {};
using grid = mesh<data>;
struct samples : dyn {};
using rows = tensor<partition<grid, blocks<data>, whole>, shape<samples, dim<4>>, double>;

template <class Net>
std::string looked_at_in_a_window() {
  const auto run = in_team<grid>([](const team<grid>& t) {
    const Net net{t, seed{5}};
    nn::finite_watch watch(t);
    const nn::accumulation window(net, false);
    const auto y = net(distribute<rows>(t, global_of({5, 4}, numbers{1})));
    sum(y * y).backward();
    return told([&] { watch.look_at(net); });
  });
  return run.well() && run.of(0) == run.of(1) ? run.of(0) : "workers differ";
}

TEST_CASE("gradients that wait, bundled or not, are refused by their code where they are looked at", "[refusal]") {
  using layer = nn::chain<nn::linear<3>>;
  CHECK(looked_at_in_a_window<nn::network<nn::bundled<layer>, rows>>() == "tessera.gradient.unreduced");
  CHECK(looked_at_in_a_window<nn::network<nn::bundled<layer, data>, rows>>() == "tessera.gradient.unreduced");
  CHECK(looked_at_in_a_window<nn::network<nn::sharded_over<layer, gathered<gathering::held>>, rows>>() ==
        "tessera.gradient.unreduced");
}

}  // namespace watched_windows
