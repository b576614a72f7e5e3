// Watching a run: numbers for TensorBoard and a table, a line of progress, and who made the first number that is not
// finite.
#include <torch/optim/adam.h>
#include <tessera/nn/watch/finite_watch.hpp>
#include <tessera/nn/watch/metrics_writer.hpp>
#include <tessera/nn/watch/progress_line.hpp>
#include <tessera/tessera.hpp>

namespace ts = tessera;

struct data : ts::axis<4> {};
using crew = ts::mesh<data>;
struct batch : ts::dyn {};
using samples = ts::tensor<ts::partition<crew, ts::blocks<data>, ts::whole>, ts::shape<batch, ts::dim<6>>, double>;
using labels = ts::tensor<ts::partition<crew, ts::blocks<data>>, ts::shape<batch>, std::int64_t>;
using net_type = ts::nn::sequential<samples, ts::nn::linear<16>, ts::nn::relu, ts::nn::linear<3>>;

/// Trains on 64 samples at a time; what they are is a function of their numbers.
void train(const ts::team<crew>& team, net_type& net, int steps) {
  // [run]
  torch::optim::Adam optimizer(net.parameters(), torch::optim::AdamOptions(1e-2));
  ts::nn::metrics_writer metrics(team, "runs/first");
  ts::nn::progress_line line(team, "step", steps);
  for (int step = 0; step < steps; ++step) {
    const at::Tensor all = at::sin(at::arange(step * 384, (step + 1) * 384, at::kDouble).square()).view({64, 6});
    const auto x = ts::distribute<samples>(team, all);
    const auto y = ts::distribute<labels>(team, (all.narrow(1, 0, 3) + all.narrow(1, 3, 3)).argmax(1));
    optimizer.zero_grad();
    const auto loss = ts::nn::cross_entropy(net(x), y);
    loss.backward();
    const double norm = ts::nn::grad_norm(net);
    optimizer.step();
    metrics.write(step, {{"loss", loss}, {"gradient norm", norm}});
    line.update(step + 1, fmt::format("loss {:.3f}", ts::item(loss)), (step + 1) * all.size(0));
  }
  metrics.flush();  // or an error of the disk goes unheard
  // [end]
}

int main(int argc, char** argv) {
  return ts::launch<crew>(argc, argv, [](ts::team<crew>& team) {
    net_type net{team, ts::seed{7}};
    train(team, net, 200);

    // [watch]
    const auto watch = std::make_shared<ts::nn::finite_watch>(team);
    net.observe(watch);
    at::Tensor x = at::ones({64, 6}, at::kDouble);
    x[40][2] = std::numeric_limits<double>::infinity();  // a sample of the third worker
    const auto y = net(ts::distribute<samples>(team, x));
    try {
      watch->check();  // by all workers, behind each step or each hundredth
    } catch (const ts::error& e) {
      if (team.first()) fmt::print("{}\n", e.what());
    }
    // [end]
    if (watch->first()->workers != std::vector<int>{2}) throw std::runtime_error("another worker is named");
  });
}
