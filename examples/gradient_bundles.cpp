// A network's gradients in bundles: one message for all of them, in a window of several backwards.

#include <tessera/tessera.hpp>

#include <torch/optim/adamw.h>

#include <fmt/core.h>

#include <stdexcept>

namespace ts = tessera;
namespace nn = tessera::nn;

struct data : ts::axis<4> {};
using crew = ts::mesh<data>;
struct batch : ts::dyn {};
using samples = ts::tensor<ts::partition<crew, ts::blocks<data>, ts::whole>, ts::shape<batch, ts::dim<24>>, double>;
using labels = ts::tensor<ts::partition<crew, ts::blocks<data>>, ts::shape<batch>, std::int64_t>;

using layers = nn::chain<nn::linear<48>, nn::relu, nn::layer_norm<>, nn::linear<48>, nn::relu, nn::linear<5>>;
using plain_type = nn::network<layers, samples>;
using net_type = nn::network<nn::bundled<layers>, samples>;

// The same bytes in an eighth of the messages.
constexpr auto bundled = ts::traffic<net_type>(ts::bind<batch>(26)).reduced;
constexpr auto alone = ts::traffic<plain_type>(ts::bind<batch>(26)).backward;
static_assert(bundled.bytes == alone.bytes && 8 * bundled.messages == alone.messages);

at::Tensor inputs(std::int64_t n, std::int64_t from) {
  return (at::arange(24 * n, at::kDouble) + from).sin().view({n, 24});
}

// [window]
/// A step of the mean over batches that come one after the other: gradients move in the last backward alone.
double step_of(const ts::team<crew>& team, const net_type& net, torch::optim::AdamW& optimizer, int passes) {
  optimizer.zero_grad();
  double all = 0;
  for (int i = 0; i < passes; ++i) {
    const nn::accumulation window(net, i + 1 == passes);
    const at::Tensor x = inputs(26, 10 * i), wanted = x.narrow(1, 0, 5).argmax(1);
    const auto scores = net(ts::distribute<samples>(team, x));
    const auto loss = nn::cross_entropy(scores, ts::distribute<labels>(team, wanted)) / static_cast<double>(passes);
    loss.backward();
    all += ts::item(loss);
  }
  optimizer.step();
  return all;
}
// [end]

int main(int argc, char** argv) {
  return ts::launch<crew>(argc, argv, [](ts::team<crew>& team) {
    const net_type net{team, ts::seed{7}};
    torch::optim::AdamW optimizer(net.parameters(), torch::optim::AdamWOptions(1e-2));
    const double first = step_of(team, net, optimizer, 3);
    double last = first;
    for (int step = 1; step < 10; ++step) last = step_of(team, net, optimizer, 3);
    if (!(last < first)) throw std::runtime_error("nothing is learnt");
    if (team.first())
      fmt::print("{} messages a step instead of {}; the loss went from {:.4f} to {:.4f}\n", bundled.messages,
                 alone.messages, first, last);
  });
}
