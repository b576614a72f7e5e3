#include "tests/support/tensors.hpp"
#include "tests/support/torch_training.hpp"

#include <tessera/nn/gradient/data_parallel.hpp>
#include <tessera/nn/training/average.hpp>

namespace tessera::testing::shared_modules {

using namespace engine;

namespace {

struct data : axis<2> {};

/// One layer under two names, as a tied encoder and decoder are.
struct twin : torch::nn::Module {
  torch::nn::Linear a{nullptr}, b{nullptr};
  twin() {
    const torch::nn::Linear one(3, 3);
    a = register_module("a", one);
    b = register_module("b", one);
    to(at::kDouble);
    const at::NoGradGuard no_graph;
    double begin = 0;
    for (const at::Tensor& w : one->parameters())
      w.copy_(at::arange(w.numel(), at::kDouble).add(begin += 3).sin().view(w.sizes()));
  }
  at::Tensor loss(const at::Tensor& x) { return b(torch::tanh(a(x))).square().mean(); }
};

at::Tensor samples() { return at::arange(12, at::kDouble).cos().view({4, 3}); }

/// What differs of the weight behind a step from that of one process.
std::string trains_otherwise(const team<mesh<data>>& t, int stage) {
  twin net, alone;
  alone.loss(samples()).backward();
  torch::optim::SGD(alone.a->parameters(), 0.1).step();
  nn::data_parallel p(t, net, {.stage = stage});
  if (stage == 0 && p.parameters().size() != 2) return fmt::format("{} parameters", p.parameters().size());
  torch::optim::SGD optimizer(p.parameters(), 0.1);
  for (int backward = 0; backward < 2; ++backward) {
    const auto window = p.window(backward == 1);
    net.loss(samples().narrow(0, 2 * t.rank(), 2)).div(2).backward();
  }
  optimizer.step();
  p.gather();
  return at::allclose(net.b->weight, alone.a->weight, 1e-12, 1e-14) ? "" : "another weight";
}

}  // namespace

TEST_CASE("a module that another has twice trains as one, in data parallel of each stage",
          "[law][runtime][gradient][regression]") {
  for (const int stage : {0, 1, 2}) {
    const auto run = in_team<mesh<data>>([&](const auto& t) { return trains_otherwise(t, stage); });
    INFO("stage " << stage << ": " << run.errors());
    for (const auto& r : run.results) CHECK(r.value_or("lost") == "");
  }
}

TEST_CASE("averages of a module that another has twice are swapped in and out", "[runtime][regression]") {
  const auto run = in_team<mesh<data>>([](const auto& t) -> std::string {
    twin net;
    nn::data_parallel p(t, net);
    nn::average average(p, {.decay = 0.5, .warms_up = false});
    const at::Tensor first = net.a->weight.detach().clone();
    {
      const at::NoGradGuard no_graph;
      net.a->weight.add_(1);
    }
    average.update();
    {
      const auto in = average.swapped_in();
      if (!at::allclose(net.b->weight, first + 0.5)) return "another average";
    }
    if (!at::allclose(net.b->weight, first + 1)) return "averages are left in the network";
    return told([&] { average.update(); });
  });
  INFO(run.errors());
  for (const auto& r : run.results) CHECK(r.value_or("lost") == "none");
}

TEST_CASE("a list that names a leaf twice is refused", "[refusal]") {
  const auto run = in_team<mesh<data>>([](const auto& t) {
    twin net;
    return told([&] {
      nn::bundle_shards(t.state(), nn::bundle_shards::named_tensors{{"a", net.a->weight}, {"b", net.b->weight}},
                        {.stage = 1});
    });
  });
  for (const auto& r : run.results) CHECK(r.value_or("lost") == "tessera.shards.twice");
}

TEST_CASE("a gradient that autograd::grad asks for is this worker's own, and no backward of a window",
          "[law][runtime][gradient][regression]") {
  const auto run = in_team<mesh<data>>([](const auto& t) -> std::string {
    twin net, alone;
    alone.loss(samples()).backward();
    nn::data_parallel p(t, net);
    const auto mine = [&] { return net.loss(samples().narrow(0, 2 * t.rank(), 2)); };
    for (const bool last : {false, true}) {
      const auto window = p.window(last, 2.0);
      const auto asked = torch::autograd::grad({mine()}, {net.a->weight});
      twin own;
      own.loss(samples().narrow(0, 2 * t.rank(), 2)).backward();
      if (!at::allclose(asked[0], own.a->weight.grad(), 1e-12, 1e-14)) return "grad gives another gradient";
      mine().backward();
    }
    return at::allclose(net.a->weight.grad(), alone.a->weight.grad(), 1e-12, 1e-14) ? "" : "another mean";
  });
  INFO(run.errors());
  for (const auto& r : run.results) CHECK(r.value_or("lost") == "");
}

}  // namespace tessera::testing::shared_modules
