#pragma once
// The parameters of a network as leaves of a serial one, and how far the two are apart.

#include "tests/support/tensors.hpp"

#include <tessera/nn/network/program.hpp>

#include <map>

namespace tessera::testing {

using namespace engine;

using by_key = std::map<std::string, at::Tensor>;

inline double apart(const at::Tensor& a, const at::Tensor& b) {
  if (a.sizes() != b.sizes()) return 1e9;
  return a.numel() == 0 ? 0 : (a.detach().to(at::kDouble) - b.detach().to(at::kDouble)).abs().max().item<double>();
}

/// Leaves of the serial model, with the values that a network has.
template <class Net>
by_key leaves_of(const Net& net) {
  by_key w = nn::state_of(net);
  for (auto& [key, t] : w) t.set_requires_grad(true);
  return w;
}
inline std::vector<at::Tensor> listed(const by_key& w) {
  std::vector<at::Tensor> all;
  for (const auto& [key, t] : w) all.push_back(t);
  return all;
}

/// How far gradients are from those of the serial leaves.
template <class Net>
double gradients_apart(const Net& net, const by_key& w) {
  double worst = 0;
  net.each_parameter([&](const nn::parameter& p) {
    const tensor<dyn> g(p.stored().team(), cotangent(p.stored().layout()), p.stored().local().grad());
    worst = std::max(worst, apart(full_tensor(g), p.part_of(w.at(p.key()).grad())));
  });
  return worst;
}
template <class Net>
double states_apart(const Net& net, const by_key& w) {
  double worst = 0;
  for (const auto& [key, t] : nn::state_of(net)) worst = std::max(worst, apart(t, w.at(key)));
  return worst;
}

struct sequences : dyn {};

/// Whether the networks of programs have the bits of the typed one: output, and all gradients.
template <class Net>
bool alike_in_bits(const auto& workers, const at::Tensor& values, std::initializer_list<const nn::program*> programs) {
  const at::Tensor given = values.to(tessera::detail::scalar_type_of(value_of<typename Net::input>.element));
  const auto run = [&](const auto& net) {
    auto x = distribute<typename Net::input>(workers, given);
    x.requires_grad();
    const tensor<dyn> y = net(x.dynamic());
    sum(y * y).backward();
    std::vector<at::Tensor> seen{full_tensor(y), full_tensor(x.grad())};
    for (const at::Tensor& w : net.parameters()) seen.push_back(w.grad());
    return seen;
  };
  const std::vector<at::Tensor> typed = run(Net{workers, seed{4}});
  return std::all_of(programs.begin(), programs.end(), [&](const nn::program* p) {
    const std::vector<at::Tensor> seen = run(nn::dynamic_network{workers, seed{4}, *p});
    return std::equal(seen.begin(), seen.end(), typed.begin(), typed.end(),
                      [](const at::Tensor& a, const at::Tensor& b) { return at::equal(a, b); });
  });
}

struct here : axis<2> {};
using pair = mesh<here>;

}  // namespace tessera::testing
