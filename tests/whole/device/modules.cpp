#include "tests/support/device/ship.hpp"

#include <tessera/nn/gradient/data_parallel.hpp>

#include <torch/nn/module.h>
#include <torch/optim/adam.h>

using namespace tessera;
using namespace tessera::engine;
using namespace tessera::testing;

// A module of LibTorch whose tensors lie on devices, data parallel: what one process on the host makes of all samples.

namespace {

/// Two linear layers with a running mean of their inputs, on a device or on the host.
struct small_module : torch::nn::Module {
  at::Tensor weight, bias, out_weight, out_bias, mean;

  explicit small_module(c10::Device device) {
    double begin = 0;
    const auto add = [&](const char* name, std::vector<std::int64_t> sizes) {
      const at::Tensor values = at::sin(at::arange(c10::multiply_integers(sizes), at::kDouble) + (begin += 10));
      return register_parameter(name, values.view(sizes).to(device));
    };
    weight = add("weight", {7, 4});
    bias = add("bias", {7});
    out_weight = add("out_weight", {3, 7});
    out_bias = add("out_bias", {3});
    mean = register_buffer("mean", at::zeros({4}, at::kDouble).to(device));
  }

  at::Tensor forward(const at::Tensor& x) {
    if (x.size(0) > 0) mean.mul_(0.9).add_(x.mean(0), 0.1);
    return at::linear(at::tanh(at::linear(x, weight, bias)), out_weight, out_bias);
  }
};

/// 22 samples, of which workers have 9, 0, 8 and 5.
std::pair<at::Tensor, at::Tensor> samples(int begin, int end) {
  return {at::sin(at::arange(88, at::kDouble)).view({22, 4}).slice(0, begin, end),
          at::cos(at::arange(66, at::kDouble)).view({22, 3}).slice(0, begin, end)};
}
constexpr int begins[]{0, 9, 9, 17, 22};

std::vector<at::Tensor> trained_on_host() {
  small_module net(at::kCPU);
  torch::optim::Adam optimizer(net.parameters(), 0.05);
  const auto [x, y] = samples(0, 22);
  for (int step = 0; step < 4; ++step) {
    optimizer.zero_grad();
    (net.forward(x) - y).square().mean().backward();
    optimizer.step();
  }
  return net.parameters();
}

}  // namespace

TEST_CASE("a module on devices is averaged there, in bundles, and steps whole or a share as on the host",
          "[runtime][gradient]") {
  const std::vector<at::Tensor> host = trained_on_host();
  for (const int stage : {0, 1, 2})
    for (const index_t bytes : {index_t{25} << 20, index_t{100}})
      on_ship([&](team<ship>& t, c10::Device device) -> std::string {
        small_module net(device);
        nn::data_parallel parallel(t, net, {.bundle_bytes = bytes, .stage = stage});
        torch::optim::Adam optimizer(parallel.parameters(), 0.05);
        const auto [x, y] = samples(begins[t.rank()], begins[t.rank() + 1]);
        std::string wrong;
        for (int step = 0; step < 4; ++step) {
          optimizer.zero_grad();
          const auto window = parallel.window(true, static_cast<double>(x.size(0)));
          (net.forward(x.to(device)) - y.to(device)).square().mean().backward();
          for (const at::Tensor& one : parallel.parameters())
            if (one.device() != device || one.grad().device() != device) wrong += "not on the device; ";
          optimizer.step();
          parallel.gather();
        }
        for (std::size_t i = 0; i < host.size(); ++i)
          if (!at::allclose(net.parameters()[i].cpu(), host[i], 1e-12, 1e-13)) wrong += fmt::format("{} differs; ", i);
        return wrong;
      });
}

TEST_CASE("workers on devices begin alike, and follow one another's buffers", "[runtime]") {
  on_ship([](team<ship>& t, c10::Device device) -> std::string {
    small_module net(device);
    {
      const at::NoGradGuard no_graph;
      for (at::Tensor& w : net.parameters()) w.mul_(1 + t.rank());
    }
    nn::data_parallel parallel(t, net, {.buffers = nn::buffer_rule::averaged});
    std::string wrong;
    const std::vector<at::Tensor> first = small_module(at::kCPU).parameters();
    for (std::size_t i = 0; i < first.size(); ++i)
      if (!net.parameters()[i].cpu().equal(first[i])) wrong += fmt::format("{} is another; ", i);
    net.forward(samples(t.rank() * 5, t.rank() * 5 + 5).first.to(device)).sum().backward();
    if (!at::allclose(net.mean.cpu(), samples(0, 20).first.mean(0) / 10, 1e-12, 1e-13)) wrong += "another mean; ";
    return wrong;
  });
}
