// Trains a mixture of experts, over workers that divide samples and experts, and the same mixture serially beside it.

#include <tessera/tessera.hpp>

#include <torch/optim/sgd.h>

#include <fmt/core.h>

#include <stdexcept>

namespace ts = tessera;
namespace nn = tessera::nn;

struct data : ts::axis<2> {};
struct place : ts::axis<2> {};  // cuts samples too, and experts
using crew = ts::mesh<data, place>;
struct batch : ts::dyn {};
using rows = ts::tensor<ts::partition<crew, ts::blocks<data, place>, ts::whole>, ts::shape<batch, ts::dim<6>>, double>;

// [mixture]
/// Two of eight experts a row, and one that all rows have.
struct mixture {
  constexpr auto operator()(auto x) const {
    const auto scores = x | nn::named<struct router, nn::linear<8, ts::no_bias>>{};
    const auto [slots, gates, numbers, chosen] =
        nn::route<8, ts::choices<2>, ts::normalised_gates, ts::over_experts<place>>{}(x, scores);
    const auto served = slots | nn::named<struct wide, nn::experts<8, 16>>{} | nn::relu{} |
                        nn::named<struct narrow, nn::experts<8, 6>>{};
    const auto y = nn::combine{}(served, gates, numbers, chosen) + (x | nn::named<struct common, nn::linear<6>>{});
    return ts::flows{y, nn::load_balance_loss(scores, chosen)};
  }
};
// [end]

/// The loss of the same in one process: all experts see all rows, and gates are 0 where a row has not chosen.
at::Tensor serial_loss(const at::Tensor& x, const at::Tensor& wanted, const nn::state_dict& w) {
  const at::Tensor all = at::softmax(at::linear(x, w.at("router.weight")), 1);
  const auto [largest, chosen] = at::topk(all, 2, 1);
  const at::Tensor gates = at::zeros_like(all).scatter(1, chosen, largest / largest.sum(1, true));
  const at::Tensor hidden =
      at::relu(at::einsum("nf,efh->enh", {x, w.at("wide.weight")}) + w.at("wide.bias"));  // [expert, row, feature]
  const at::Tensor served = at::bmm(hidden, w.at("narrow.weight")) + w.at("narrow.bias");
  const at::Tensor y =
      at::einsum("ne,eng->ng", {gates, served}) + at::linear(x, w.at("common.weight"), w.at("common.bias"));
  const at::Tensor shares = at::zeros_like(all).scatter(1, chosen, 0.5).mean(0);
  return at::mse_loss(y, wanted) + 0.01 * 8 * (shares * all.mean(0)).sum();
}

int main(int argc, char** argv) {
  return ts::launch<crew>(argc, argv, [](ts::team<crew>& team) {
    nn::network<mixture, rows> net{team, ts::seed{7}};
    nn::state_dict serial = nn::state_of(net);
    std::vector<at::Tensor> leaves;
    for (auto& [key, w] : serial) leaves.push_back(w.set_requires_grad(true));
    torch::optim::SGD ours(net.parameters(), torch::optim::SGDOptions(0.2));
    torch::optim::SGD theirs(leaves, torch::optim::SGDOptions(0.2));
    double first = 0, last = 0, apart = 0;
    for (int step = 0; step < 30; ++step) {
      const at::Tensor x = (at::arange(6 * 50, at::kDouble) * (1 + step % 3)).sin().view({50, 6});
      const at::Tensor wanted = at::sin(3 * x.flip(1));
      ours.zero_grad();
      theirs.zero_grad();
      const auto [y, balance] = net(ts::distribute<rows>(team, x));
      const auto loss = nn::mse_loss(y, ts::distribute<rows>(team, wanted)) + 0.01 * balance;
      const at::Tensor other = serial_loss(x, wanted, serial);
      loss.backward();
      other.backward();
      ours.step();
      theirs.step();
      last = ts::item(loss);
      if (step == 0) first = last;
      apart = std::max(apart, std::abs(last - other.item<double>()));
    }
    if (!(last < 0.8 * first)) throw std::runtime_error("nothing is learnt");
    if (!(apart < 1e-9)) throw std::runtime_error(fmt::format("the serial mixture is {} away", apart));
    if (team.first()) fmt::print("the loss went from {:.4f} to {:.4f}, as in one process\n", first, last);
  });
}
