#include "tests/support/tensors.hpp"

#include <tessera/nn/gradient/held_gradients.hpp>

#include <torch/optim/adam.h>
#include <torch/optim/sgd.h>

#include <numeric>

// Gradients of a network's parameters in bundles: what every parameter's own exchange brings, in fewer messages.

using namespace tessera;
using namespace tessera::engine;
using namespace tessera::testing;

namespace {

struct samples : dyn {};

template <int D, int M>
struct grids {
  struct data : axis<D> {};
  struct model : axis<M> {};
  using grid = mesh<data, model>;
  using rows = tensor<partition<grid, blocks<data>, whole>, shape<samples, dim<10>>, double>;

  // Rows cut unevenly, columns cut, copies, and a norm: four ways of lying, one bundle for each list of axes.
  using layers = nn::chain<nn::linear<9, cut_out<model>>, nn::relu,
                           nn::linear<10, cut_in<model>, output_as<partition<grid, blocks<data>, whole>>>,
                           nn::layer_norm<>, nn::linear<6>, nn::relu, nn::linear<2>>;
  using plain = nn::network<layers, rows>;
  using held = nn::network<nn::sharded_over<layers, gathered<gathering::held>>, rows>;
  using bundled = nn::network<nn::bundled<layers>, rows>;
  using tiles = nn::network<nn::bundled<layers, data>, rows>;
};

at::Tensor batch(std::uint64_t which, std::int64_t rows) { return global_of({rows, 10}, numbers{which}); }

/// What a backward of a network adds to the gradients of its parameters.
template <class Net, class Team>
void backward(const Net& net, const Team& team, const at::Tensor& x) {
  const auto y = net(distribute<typename Net::input>(team, x));
  sum(y * y).backward();
}

template <class Net>
std::vector<at::Tensor> gradients(const Net& net) {
  std::vector<at::Tensor> all;
  for (const at::Tensor& w : net.parameters()) all.push_back(w.grad());
  return all;
}

bool equal(const std::vector<at::Tensor>& a, const std::vector<at::Tensor>& b) {
  return a.size() == b.size() &&
         std::equal(a.begin(), a.end(), b.begin(),
                    [](const at::Tensor& x, const at::Tensor& y) { return x.defined() && y.defined() && x.equal(y); });
}

/// Bytes and messages that come to all workers, less those that are counted.
template <class Net, class F>
std::pair<index_t, index_t> uncounted(const F& step, std::int64_t rows) {
  const auto run = in_team<typename Net::input::mesh_type>([&](auto& t) {
    Net net{t, seed{3}};
    net.compare_copies_every(0);
    auto x = distribute<typename Net::input>(t, batch(1, rows));
    x.requires_grad();
    net(x);  // binds
    nn::reduce_gradients(net);
    const received before = t.state()->total;
    step(net, x);
    return std::pair(t.state()->total.bytes - before.bytes, t.state()->total.messages - before.messages);
  });
  if (!run.well()) return {-1, -1};
  std::pair<index_t, index_t> all;
  for (const auto& r : run.results) all = {all.first + r->first, all.second + r->second};
  const traffic_value counted = traffic<Net>(bind<samples>(rows));
  for (const direction* d : {&counted.forward, &counted.backward, &counted.gathered, &counted.reduced})
    all = {all.first - d->bytes, all.second - d->messages};
  return all;
}

template <int D, int M>
void judge_bits() {
  using G = grids<D, M>;
  const auto run = in_team<typename G::grid>([](auto& t) {
    const typename G::plain plain{t, seed{5}};
    const typename G::held held{t, seed{5}};
    const typename G::bundled bundled{t, seed{5}};
    bool same = true;
    for (const std::uint64_t which : {1u, 2u}) {
      for (const at::Tensor& w : plain.parameters()) w.mutable_grad().reset();
      for (const at::Tensor& w : held.parameters()) w.mutable_grad().reset();
      for (const at::Tensor& w : bundled.parameters()) w.mutable_grad().reset();
      backward(plain, t, batch(which, 7));
      backward(held, t, batch(which, 7));
      nn::reduce_gradients(held);
      backward(bundled, t, batch(which, 7));
      same = same && equal(gradients(held), gradients(plain)) && equal(gradients(bundled), gradients(plain));
    }
    return same;
  });
  INFO(run.errors());
  REQUIRE(run.well());
  for (const auto& r : run.results) CHECK(*r);
}

}  // namespace

TEST_CASE("bundled or not, gradients are equal to the bit", "[law]") {
  judge_bits<1, 1>();
  judge_bits<2, 1>();
  judge_bits<3, 2>();
  judge_bits<2, 3>();
  judge_bits<1, 4>();
}

TEST_CASE("a step moves the bytes and the messages that are counted, a bundle at a time", "[plan][law]") {
  const auto pass = [](const auto& net, const auto& x) {
    const auto y = net(x);
    torch::autograd::backward({y.local()}, {at::ones_like(y.local())});
  };
  const auto wait = [&](const auto& net, const auto& x) {
    pass(net, x);
    nn::reduce_gradients(net);
  };
  const std::pair<index_t, index_t> none;
  CHECK(uncounted<grids<2, 1>::bundled>(pass, 7) == none);
  CHECK(uncounted<grids<3, 2>::bundled>(pass, 7) == none);
  CHECK(uncounted<grids<2, 4>::bundled>(pass, 7) == none);
  CHECK(uncounted<grids<4, 1>::held>(wait, 2) == none);
  CHECK(uncounted<grids<3, 2>::tiles>(pass, 7) == none);
  // Ten parameters: with one axis one bundle; beside a cut axis those that it cuts have another than its copies.
  using line = traffic_value;
  constexpr line one = traffic<grids<2, 1>::bundled>(bind<samples>(8)),
                 all = traffic<grids<2, 1>::plain>(bind<samples>(8));
  STATIC_REQUIRE(one.reduced.messages == 2);
  STATIC_REQUIRE(all.backward.messages == 2 * 10);
  STATIC_REQUIRE(one.reduced.bytes == all.backward.bytes);
  constexpr line grid = traffic<grids<2, 2>::bundled>(bind<samples>(8));
  STATIC_REQUIRE(grid.reduced.messages < traffic<grids<2, 2>::plain>(bind<samples>(8)).backward.messages);
}

TEST_CASE("a window of passes moves gradients in its last alone, and steps as the serial network does", "[gradient]") {
  using G = grids<2, 2>;
  const auto run = in_team<G::grid>([](team<G::grid>& t) {
    G::bundled net{t, seed{5}};
    const G::held held{t, seed{5}};
    const G::plain whole{t, seed{5}};
    net.compare_copies_every(0);
    torch::optim::Adam ours(net.parameters(), torch::optim::AdamOptions(0.01));
    torch::optim::Adam theirs(held.parameters(), torch::optim::AdamOptions(0.01));
    torch::optim::Adam serial(whole.parameters(), torch::optim::AdamOptions(0.01));
    double worst = 0;
    index_t moved = 0;
    for (int step = 0; step < 3; ++step) {
      ours.zero_grad();
      theirs.zero_grad();
      serial.zero_grad();
      for (int pass = 0; pass < 3; ++pass) {
        const at::Tensor x = batch(static_cast<std::uint64_t>(3 * step + pass), 4 + pass);
        {
          const nn::accumulation window(net, pass == 2);
          const auto y = net(distribute<G::rows>(t, x));
          const auto loss = sum(y * y);
          const index_t before = t.state()->total.bytes;
          loss.backward();
          // of activations that a cut axis shares as much moves as in a network whose gradients wait
          if (pass != 2) moved += t.state()->total.bytes - before;
        }
        {
          const auto y = held(distribute<G::rows>(t, x));
          const auto loss = sum(y * y);
          const index_t before = t.state()->total.bytes;
          loss.backward();
          if (pass != 2) moved -= t.state()->total.bytes - before;
        }
        backward(whole, t, x);
      }
      nn::reduce_gradients(held);
      if (!equal(gradients(net), gradients(held))) return 1e9;
      ours.step();
      theirs.step();
      serial.step();
    }
    for (std::size_t i = 0; i < net.parameters().size(); ++i)
      worst = std::max(worst, (net.parameters()[i] - whole.parameters()[i]).abs().max().item<double>());
    return moved == 0 ? worst : 1e6;
  });
  INFO(run.errors());
  REQUIRE(run.well());
  for (const auto& r : run.results) CHECK(*r < 1e-12);
}

namespace {

/// The bytes that all workers receive in a window of passes, of a network of so many bytes of parameters, in units of
/// what p workers' copies of those take: (p - 1) n.
template <class Net>
std::optional<std::vector<at::Tensor>> stepped(int passes, nn::between_passes how, double* units) {
  const auto run = in_team<typename Net::input::mesh_type>([&](auto& t) {
    Net net{t, seed{5}};
    net.compare_copies_every(0);
    torch::optim::Adam optimizer(net.parameters(), torch::optim::AdamOptions(0.01));
    index_t moved = 0;
    for (int step = 0; step < 2; ++step) {
      const index_t before = t.state()->total.bytes;
      for (int pass = 0; pass < passes; ++pass) {
        const nn::accumulation window(net, pass + 1 == passes, how);
        backward(net, t, batch(static_cast<std::uint64_t>(3 * step + pass), 4 + pass));
      }
      moved = t.state()->total.bytes - before;
      optimizer.step();
      optimizer.zero_grad();
    }
    std::vector<at::Tensor> all{at::full({}, moved, at::kLong)};
    for (const auto& [key, w] : nn::state_of(net)) all.push_back(w);
    return all;
  });
  if (!run.well()) return std::nullopt;
  double all = 0;
  for (const auto& r : run.results) all += (*r)[0].template item<double>();
  constexpr double n = 8 * (9 * 10 + 9 + 10 * 9 + 10 + 10 + 10 + 6 * 10 + 6 + 2 * 6 + 2);
  *units = all / (n * (Net::input::mesh_type::value.size() - 1));
  return std::vector<at::Tensor>(run.results[0]->begin() + 1, run.results[0]->end());
}

}  // namespace

TEST_CASE("stages of ZeRO move what they are known to move, and step alike", "[law]") {
  using G = grids<4, 1>;
  using every_use = nn::network<nn::sharded_over<G::layers, G::data>, G::rows>;
  constexpr int passes = 3;
  double units = 0;
  const auto copies = stepped<G::bundled>(passes, nn::between_passes::wait, &units);
  CHECK(units == 2);
  const auto one = stepped<G::tiles>(passes, nn::between_passes::wait, &units);
  CHECK(units == 1 + 1);
  const auto two = stepped<G::tiles>(passes, nn::between_passes::reduce, &units);
  CHECK(units == passes + 1);
  const auto three = stepped<every_use>(passes, nn::between_passes::wait, &units);
  CHECK(units == Approx(3 * passes - passes * (9 + 10 + 6 + 2) / 299.0));  // no backward reads a linear layer's bias
  REQUIRE((copies && one && two && three));
  for (std::size_t i = 0; i < copies->size(); ++i) {
    CHECK(at::allclose((*one)[i], (*copies)[i], 1e-12, 1e-14));
    CHECK(at::allclose((*two)[i], (*copies)[i], 1e-12, 1e-14));
    CHECK(at::allclose((*three)[i], (*copies)[i], 1e-12, 1e-14));
  }
}

namespace {

/// The losses of some steps by SGD, which LibTorch makes through `data()`, so that no version shows them. A look is a
/// forward between the sums and the step.
template <class Net, class Team>
std::vector<double> losses_by_sgd(const Team& t, bool looks) {
  Net net{t, seed{3}};
  torch::optim::SGD optimizer(net.parameters(), 0.01);
  std::vector<double> all;
  for (std::uint64_t step = 0; step < 3; ++step) {
    const auto x = distribute<typename Net::input>(t, batch(step, 12));
    optimizer.zero_grad();
    const auto y = net(x);
    const auto loss = sum(y * y);
    loss.backward();
    nn::reduce_gradients(net);
    if (looks) {
      const at::NoGradGuard no_graph;
      for (int times = 0; times < 2; ++times)
        if (!net(x).local().equal(y.local())) return {};
    }
    optimizer.step();
    all.push_back(full_tensor(loss).template item<double>());
  }
  return all;
}

}  // namespace

TEST_CASE("a forward between the sum of gradients and a step leaves nothing of the weights before it",
          "[law][gradient][regression]") {
  using on = grids<2, 2>;
  const auto run = in_team<on::grid>([](auto& t) {
    const std::vector<double> wanted = losses_by_sgd<on::plain>(t, false);
    return wanted[0] != wanted[2] && losses_by_sgd<on::held>(t, true) == wanted &&
           losses_by_sgd<on::tiles>(t, true) == wanted && losses_by_sgd<on::bundled>(t, true) == wanted &&
           losses_by_sgd<on::held>(t, false) == wanted;
  });
  INFO(run.errors());
  for (const auto& r : run.results) CHECK(r.value_or(false));
}

TEST_CASE("bundles begin while backward goes on, in one order", "[law]") {
  using G = grids<3, 1>;
  const auto run = in_team<G::grid>([](team<G::grid>& t) {
    G::tiles net{t, seed{5}};  // each parameter has its own way back
    net.compare_copies_every(0);
    const std::vector<index_t> bytes = net.held_gradients()->bundle_bytes();
    auto x = distribute<G::rows>(t, batch(1, 6));
    x.requires_grad();
    int begun = 0, before_the_last = -1;
    const auto y = net(x);
    const auto loss = sum(y * y);
    t.state()->watch = {[](void* self, const phase&, element) { ++*static_cast<int*>(self); }, nullptr, &begun};
    x.local().register_hook([&](const at::Tensor&) { before_the_last = begun; });
    loss.backward();
    t.state()->watch = {};
    return std::array<int, 3>{static_cast<int>(bytes.size()), before_the_last, begun};
  });
  INFO(run.errors());
  REQUIRE(run.well());
  for (const auto& r : run.results) {
    CHECK((*r)[0] == 10);
    CHECK((*r)[2] >= (*r)[0]);
    CHECK((*r)[1] > 0);
    CHECK((*r)[2] - (*r)[1] <= 2);  // the first layer's, whose gradients come with that of its input
  }
}

TEST_CASE("what waits in a window cannot be stepped, and a window is one", "[refusal]") {
  using G = grids<2, 1>;
  const auto run = in_team<G::grid>([](team<G::grid>& t) {
    G::bundled net{t, seed{5}};
    std::string all = told([&] {
      const nn::accumulation one(net, false);
      const nn::accumulation two(net, true);
    });
    {
      const nn::accumulation window(net, false);
      backward(net, t, batch(1, 4));
    }
    try {
      torch::optim::SGD(net.parameters(), 0.1).step();
    } catch (const c10::Error& e) {
      all += std::string(e.what()).find("[tessera.gradient.unreduced]") == std::string::npos ? " other" : " step";
    }
    all += " " + told([&] { nn::grad_norm(net); });
    {
      const nn::accumulation window(net, false, nn::between_passes::reduce);
      backward(net, t, batch(2, 4));
    }
    all += " " + told([&] { nn::grad_norm(net); });
    for (const at::Tensor& w : net.parameters()) w.mutable_grad().reset();  // what waited is let go
    backward(net, t, batch(3, 4));
    const G::plain beside{t, seed{5}};
    backward(beside, t, batch(3, 4));
    return all + (equal(gradients(net), gradients(beside)) ? " same" : " other");
  });
  INFO(run.errors());
  REQUIRE(run.well());
  for (const auto& r : run.results)
    CHECK(*r == "tessera.data_parallel.windows step tessera.gradient.unreduced tessera.gradient.unreduced same");
}

TEST_CASE("a gradient that is let go counts zero in its bundle, and others what they are", "[gradient]") {
  using G = grids<2, 2>;
  const auto run = in_team<G::grid>([](team<G::grid>& t) {
    const G::held net{t, seed{5}};
    const G::plain beside{t, seed{5}};
    backward(net, t, batch(1, 5));
    backward(beside, t, batch(1, 5));
    net.parameters()[4].mutable_grad().reset();
    nn::reduce_gradients(net);
    std::vector<at::Tensor> wanted = gradients(beside);
    wanted[4] = at::zeros_like(wanted[4]);
    return equal(gradients(net), wanted);
  });
  INFO(run.errors());
  REQUIRE(run.well());
  for (const auto& r : run.results) CHECK(*r);
}

/// How many of two workers refuse gradients of a parameter that one of them has frozen.
template <class Net>
int refusing_one_frozen() {
  return refusals<grids<2, 1>::grid>("tessera.agree.fingerprint", [](auto& t) {
    Net net{t, seed{3}};
    for (int pass = 0; pass < 2; ++pass) {
      if (pass == 1 && t.rank() == 0) net.parameters()[0].set_requires_grad(false);
      backward(net, t, batch(1, 5));
      nn::reduce_gradients(net);
    }
  });
}

TEST_CASE("a parameter that one worker alone has frozen is told by all of them, in bundles too",
          "[refusal][gradient][regression]") {
  using two = grids<2, 1>;
  CHECK(refusing_one_frozen<two::plain>() == 2);
  CHECK(refusing_one_frozen<two::held>() == 2);
  CHECK(refusing_one_frozen<two::bundled>() == 2);
  CHECK(refusing_one_frozen<two::tiles>() == 2);
}

TEST_CASE("a part of a bundled network, and a copy of it, learn what the whole does", "[runtime]") {
  using G = grids<2, 2>;
  const auto run = in_team<G::grid>([](team<G::grid>& t) {
    G::bundled net{t, seed{5}};
    const G::bundled part{net.at()};
    const G::bundled copy = net.clone();
    backward(net, t, batch(1, 5));
    const std::vector<at::Tensor> wanted = gradients(net);
    backward(copy, t, batch(1, 5));
    bool same = equal(gradients(copy), wanted);
    for (const at::Tensor& w : net.parameters()) w.mutable_grad().reset();
    backward(part, t, batch(1, 5));
    return same && equal(gradients(net), wanted) && equal(gradients(part), wanted);
  });
  INFO(run.errors());
  REQUIRE(run.well());
  for (const auto& r : run.results) CHECK(*r);
}
