#pragma once
// How examples hold a network against the LibTorch module that it came from.

#include <tessera/nn/parameter/module_state.hpp>
#include <tessera/tessera.hpp>

#include <torch/optim/sgd.h>

/// Gives a module another state, whose keys are its own, in double.
inline void assign(torch::nn::Module& serial, const tessera::nn::state_dict& begin) {
  serial.to(at::kDouble);
  const at::NoGradGuard no_gradients;
  for (auto& [key, value] : tessera::nn::state_of(serial)) value.copy_(begin.at(key));
}

/// Gives a module weights in double that every worker makes alike; LibTorch's own begin differently on each, in float.
inline void fill(torch::nn::Module& serial) {
  double shift = 0;
  for (at::Tensor& w : serial.parameters())
    w.set_data(at::sin(at::arange(w.numel(), at::kDouble) * 1.3 + ++shift).view_as(w) /
               std::sqrt(static_cast<double>(w[0].numel() + 1)));
  for (at::Tensor& b : serial.buffers())
    if (b.is_floating_point()) b.set_data(b.to(at::kDouble));
}

inline double largest(const at::Tensor& a, const at::Tensor& b) { return (a - b).abs().max().item<double>(); }

/// The largest difference of two states with equal keys.
inline double apart(const tessera::nn::state_dict& ours, const tessera::nn::state_dict& theirs) {
  double worst = ours.size() == theirs.size() ? 0 : INFINITY;
  for (const auto& [key, value] : theirs) worst = std::max(worst, largest(ours.at(key), value.detach()));
  return worst;
}

struct mean_of_squares {
  auto ours(const auto& y) const { return tessera::mean(y * y); }
  at::Tensor theirs(const at::Tensor& z) const { return at::square(z).mean(); }
};

/// How far five steps of a network are from those of the module that it came from: results, gradients, weights and
/// buffers.
template <class Net, class Serial, class Team, class Samples, class Losses = mean_of_squares>
double apart_in_five_steps(const Team& team, Serial& serial, const torch::optim::SGDOptions& options,
                           const Samples& samples, const Losses& losses = {}) {
  fill(serial);
  Net net{team, tessera::seed{7}};
  tessera::nn::assign(net, tessera::nn::state_of(serial));
  torch::optim::SGD ours(net.parameters(), options);
  torch::optim::SGD theirs(serial.parameters(), options);
  double worst = 0;
  for (int step = 0; step < 5; ++step) {
    const at::Tensor whole = samples(step).requires_grad_(true);
    auto x = tessera::distribute<typename Net::input>(team, whole.detach());
    x.requires_grad();
    ours.zero_grad();
    theirs.zero_grad();
    const auto y = net(x);
    const at::Tensor z = serial.forward(whole);
    losses.ours(y).backward();
    losses.theirs(z).backward();
    worst = std::max(
        {worst, largest(tessera::full_tensor(y), z.detach()), largest(tessera::full_tensor(x.grad()), whole.grad())});
    net.each_parameter([&](const tessera::nn::parameter& p) {
      const tessera::tensor<tessera::dyn> gradient(p.stored().team(), tessera::cotangent(p.stored().layout()),
                                                   p.stored().local().grad());
      worst = std::max(worst,
                       largest(tessera::full_tensor(gradient), p.part_of(serial.named_parameters()[p.key()].grad())));
    });
    ours.step();
    theirs.step();
  }
  return std::max(worst, apart(tessera::nn::state_of(net), tessera::nn::state_of(serial)));
}
