// What a training run keeps beside its weights: a loss scale and averages of the weights; beside one process, which
// keeps them by hand.
#include <torch/nn/utils/clip_grad.h>
#include <torch/optim/adamw.h>
#include <tessera/nn/training/average.hpp>
#include <tessera/nn/training/loss_scaler.hpp>
#include <tessera/tessera.hpp>

namespace ts = tessera;
namespace nn = ts::nn;

struct data : ts::axis<4> {};
using crew = ts::mesh<data>;
struct batch : ts::dyn {};
using samples = ts::tensor<ts::partition<crew, ts::blocks<data>, ts::whole>, ts::shape<batch, ts::dim<6>>, double>;
using labels = ts::tensor<ts::partition<crew, ts::blocks<data>>, ts::shape<batch>, std::int64_t>;
using net_type = nn::sequential<samples, nn::linear<16>, nn::relu, nn::linear<3>>;

struct sets {
  at::Tensor x, y;
};
sets generated(std::int64_t n) {
  const at::Tensor x = at::sin(at::arange(n * 6, at::kDouble).square()).view({n, 6});
  return {x, (x.narrow(1, 0, 3) + x.narrow(1, 3, 3)).argmax(1)};
}

double loss_of(const ts::team<crew>& team, const net_type& net, const sets& all) {
  const at::NoGradGuard no_graph;
  return ts::item(nn::cross_entropy(net(ts::distribute<samples>(team, all.x)), ts::distribute<labels>(team, all.y)));
}

// [train]
/// Trains, and gives the loss of the averaged weights.
double trained(const ts::team<crew>& team, net_type& net, const sets& all, int steps) {
  torch::optim::AdamW optimizer(net.parameters(), torch::optim::AdamWOptions(1e-2));
  nn::loss_scaler scaler({.scale = 1024, .interval = 10});
  nn::average average(net, {.decay = 0.9});
  for (int step = 0; step < steps; ++step) {
    optimizer.zero_grad();
    const auto x = ts::distribute<samples>(team, all.x);
    const auto y = ts::distribute<labels>(team, all.y);
    scaler.scaled(nn::cross_entropy(net(x), y)).backward();
    const nn::judgement judged = scaler.step(optimizer, net, {.most = 0.5});  // one exchange of a number
    if (judged.finite) average.update();                                      // moves nothing
  }
  const auto in = average.swapped_in();  // the network's weights are the averages until the end of the scope
  return loss_of(team, net, all);
}
// [end]

// [between]
/// The same step where gradients are read between backward and the optimizer.
nn::judgement step_of(nn::loss_scaler& scaler, torch::optim::AdamW& optimizer, const net_type& net) {
  const nn::judgement judged = scaler.unscale(net, {.most = 0.5});
  if (judged.finite && judged.norm > 100) fmt::print("a large step: {}\n", judged.norm);  // on every worker, or on none
  return scaler.step(optimizer, net);                                                     // goes on from there
}
// [end]

double trained_serially(std::map<std::string, at::Tensor> w, const sets& all, int steps) {
  std::vector<at::Tensor> leaves;
  std::map<std::string, at::Tensor> averages;
  for (auto& [key, one] : w) {
    averages[key] = one.clone();
    leaves.push_back(one.set_requires_grad(true));
  }
  const auto loss = [&](const std::map<std::string, at::Tensor>& by) {
    const at::Tensor hidden = at::relu(at::linear(all.x, by.at("0.weight"), by.at("0.bias")));
    return at::cross_entropy_loss(at::linear(hidden, by.at("2.weight"), by.at("2.bias")), all.y);
  };
  torch::optim::AdamW optimizer(leaves, torch::optim::AdamWOptions(1e-2));
  for (int step = 0; step < steps; ++step) {
    optimizer.zero_grad();
    loss(w).backward();
    torch::nn::utils::clip_grad_norm_(leaves, 0.5);
    optimizer.step();
    const at::NoGradGuard no_graph;
    for (auto& [key, one] : averages) one.mul_(0.9).add_(w.at(key) * (1 - 0.9));
  }
  return loss(averages).item<double>();
}

int main(int argc, char** argv) {
  return ts::launch<crew>(argc, argv, [](ts::team<crew>& team) {
    const sets all = generated(50);
    net_type net{team, ts::seed{7}};
    const double wanted = trained_serially(nn::state_of(net), all, 30);
    const double found = trained(team, net, all, 30);
    if (!(std::abs(found - wanted) < 1e-9)) throw std::runtime_error(fmt::format("{} and not {}", found, wanted));
    nn::loss_scaler scaler;
    torch::optim::AdamW optimizer(net.parameters());
    for (at::Tensor& p : net.parameters()) p.mutable_grad() = at::ones_like(p);
    if (!step_of(scaler, optimizer, net).finite) throw std::runtime_error("ones are finite");
    if (team.first()) fmt::print("loss of the averages {:.6f}, as in one process\n", found);
  });
}
