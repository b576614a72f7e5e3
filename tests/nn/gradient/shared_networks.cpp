// Networks that share held parameters, each of which takes them in a form of its own.

#include "tests/support/tensors.hpp"

#include <torch/optim/sgd.h>

namespace shared_networks {

using namespace tessera;
using namespace tessera::testing;

struct samples : dyn {};
struct data : axis<2> {};
using grid = mesh<data>;
using cut = partition<grid, blocks<data>, whole>;
using alike = partition<grid, whole, whole, invariant<data>>;
template <class P>
using rows = tensor<P, shape<samples, dim<4>>, double>;
using layer = nn::chain<nn::linear<4>>;
// Copies that are used as terms, or as they are; tiles that are gathered for both.
template <class P>
using held = nn::network<nn::sharded_over<layer, gathered<gathering::held>>, rows<P>>;
template <class P>
using held_tiles = nn::network<nn::sharded_over<layer, data, gathered<gathering::held>>, rows<P>>;
template <class P>
using copies = nn::network<nn::bundled<layer>, rows<P>>;
template <class P>
using tiles = nn::network<nn::bundled<layer, data>, rows<P>>;

at::Tensor batch() { return global_of({5, 4}, numbers{1}); }

/// The gradient of Σ y² of one process.
struct wanted {
  at::Tensor weight, bias;

  explicit wanted(nn::state_dict of, bool twice = false) : weight(of.begin()->second), bias(weight) {
    for (auto& [key, one] : of) (key.ends_with("weight") ? weight : bias) = one.clone().requires_grad_();
    at::Tensor y = at::linear(batch(), weight, bias);
    if (twice) y = at::linear(y, weight, bias);
    at::sum(y * y).backward();
  }
  /// What is so many times that in a network, where it is not.
  template <class Net>
  std::string differs(const Net& net, double times, const char* where) const {
    std::string wrong;
    net.each_parameter([&](const nn::parameter& p) {
      const at::Tensor& one = p.path().ends_with("weight") ? weight : bias;
      if (!at::allclose(full_tensor(p.stored().grad()), times * one.grad())) wrong += p.path() + " " + where + "; ";
    });
    return wrong;
  }
};

template <class Net>
void backward(const Net& net, const team<grid>& t) {
  const auto y = net(distribute<typename Net::input>(t, batch()));
  sum(y * y).backward();
}

/// What is wrong on any worker.
template <class F>
std::string found(const F& f) {
  const auto out = in_team<grid>([&](team<grid>& t) -> std::string { return f(t); });
  std::string all = out.errors();
  for (const auto& one : out.results) all += one.value_or("");
  return all;
}

template <class Net, class Part>
std::string learns_differently() {
  return found([](team<grid>& t) {
    const Net net{t, seed{5}};
    const Part part{net.at()};
    const wanted one(nn::state_of(net));
    backward(net, t);
    backward(part, t);
    backward(part, t);
    nn::reduce_gradients(net);
    nn::reduce_gradients(part);
    std::string wrong = one.differs(net, 3, "one by one");
    const auto x = net(distribute<typename Net::input>(t, batch()));
    const auto y = part(distribute<typename Part::input>(t, batch()));
    const auto first = sum(x * x);
    const auto second = sum(y * y);
    torch::autograd::backward({first.local(), second.local()},
                              {at::ones_like(first.local()), at::ones_like(second.local())});
    nn::reduce_gradients(part);
    nn::reduce_gradients(net);
    return wrong + one.differs(net, 5, "together");
  });
}

TEST_CASE("gradients of networks that take a held parameter in different forms add up", "[law][gradient]") {
  CHECK(learns_differently<copies<cut>, copies<alike>>() == "");
  CHECK(learns_differently<copies<alike>, copies<cut>>() == "");
  CHECK(learns_differently<tiles<cut>, tiles<alike>>() == "");
  CHECK(learns_differently<held<cut>, held<alike>>() == "");
  CHECK(learns_differently<held_tiles<alike>, held_tiles<cut>>() == "");
  CHECK(learns_differently<copies<cut>, copies<cut>>() == "");
}

template <class Net, class Part>
std::string waits_differently() {
  return found([](team<grid>& t) {
    const Net net{t, seed{5}};
    const Part part{net.at()};
    const wanted one(nn::state_of(net));
    for (const bool last : {false, true}) {
      const nn::accumulation window(part, last);
      backward(part, t);
    }
    std::string wrong = one.differs(net, 2, "behind a window of a part");
    backward(net, t);
    wrong += one.differs(net, 3, "behind a backward of the whole");
    for (const bool last : {false, true}) {
      const nn::accumulation window(net, last);
      backward(net, t);
      if (last) backward(part, t);
    }
    wrong += one.differs(net, 6, "inside of a window");
    for (const bool last : {false, true}) {
      {
        const nn::accumulation window(net, last);
        backward(net, t);
      }
      if (!last) backward(part, t);
    }
    return wrong + one.differs(net, 9, "between windows");
  });
}

TEST_CASE("a window of one network leaves others' backwards as they are", "[gradient]") {
  CHECK(waits_differently<copies<cut>, copies<cut>>() == "");
  CHECK(waits_differently<tiles<cut>, tiles<cut>>() == "");
  CHECK(waits_differently<tiles<cut>, tiles<alike>>() == "");
}

struct used_twice {
  constexpr auto operator()(auto x) const {
    const auto y = x | nn::shared<struct tie, nn::linear<4>>{};
    return to<alike>(y) | nn::shared<struct tie, nn::linear<4>>{};
  }
};
/// A class that shows a network's parameters, and nothing of what its layers do with them.
template <class Net>
struct shown {
  const Net& net;
  template <class Visit>
  void each_parameter(Visit&& visit) const {
    net.each_parameter(visit);
  }
};

TEST_CASE("a class whose layers share a parameter in two forms reduces both", "[gradient]") {
  CHECK(found([](team<grid>& t) {
          const nn::network<nn::sharded_over<used_twice, gathered<gathering::held>>, rows<cut>> net{t, seed{5}};
          const wanted one(nn::state_of(net), true);
          backward(net, t);
          nn::reduce_gradients(shown<decltype(net)>{net});
          return one.differs(net, 1, "");
        }) == "");
}

// LibTorch's SGD steps through `data()`, which no version shows.
template <class Net>
std::string stale() {
  return found([](team<grid>& t) {
    const Net net{t, seed{5}}, part{net.at()};
    torch::optim::SGD optimizer(net.parameters(), 0.1);
    const auto x = distribute<typename Net::input>(t, batch());
    std::string wrong;
    for (int step = 0; step < 2; ++step) {
      optimizer.zero_grad();
      backward(net, t);
      nn::reduce_gradients(net);
      full_tensor(part(x));  // a look between the sums and the step
      optimizer.step();
      const nn::state_dict now = nn::state_of(net);
      const at::Tensor y = at::linear(batch(), now.at("0.weight"), now.at("0.bias"));
      if (!at::allclose(full_tensor(part(x)), y)) wrong += "the part; ";
      if (!at::allclose(full_tensor(net(x)), y)) wrong += "the whole; ";
    }
    return wrong;
  });
}

TEST_CASE("networks that share what is gathered all see a step", "[runtime]") {
  CHECK(stale<tiles<cut>>() == "");
  CHECK(stale<held_tiles<cut>>() == "");
  CHECK(stale<held<cut>>() == "");
}

template <class Net>
std::string tiled_differently() {
  return found([](team<grid>& t) {
    const Net net{t, seed{5}};
    const wanted one(nn::state_of(net));
    backward(net, t);
    nn::reduce_gradients(net);
    std::string wrong;
    for (const at::Tensor& w : net.parameters())
      if (w.grad().sizes() != w.sizes() || w.grad().storage().nbytes() > w.storage().nbytes())
        wrong += "a gradient has more than its tile; ";
    wrong += one.differs(net, 1, "");
    torch::optim::SGD(net.parameters(), 0.1).zero_grad(false);
    return wrong;
  });
}

TEST_CASE("tiles of what all workers compute alike have the gradients of tiles", "[regression][gradient]") {
  CHECK(tiled_differently<tiles<alike>>() == "");
  CHECK(tiled_differently<held_tiles<alike>>() == "");
  CHECK(tiled_differently<nn::network<nn::sharded_over<layer, data>, rows<alike>>>() == "");
}

}  // namespace shared_networks
