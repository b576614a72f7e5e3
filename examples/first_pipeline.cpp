// A pipeline in one program: two stages that take turns, each on two workers that share its rows; beside the same
// network in one process.
#include <torch/nn/utils/clip_grad.h>
#include <torch/optim/adam.h>
#include <tessera/inspect/schedule.hpp>
#include <tessera/nn/pipeline/pipeline_parallel.hpp>
#include <tessera/tessera.hpp>

namespace ts = tessera;
namespace nn = ts::nn;

// [types]
struct data : ts::axis<2> {};   // the workers that share a batch
struct stage : ts::axis<2> {};  // those that take turns
using grid = ts::mesh<data, stage>;
struct batch : ts::dyn {};

template <int Stage>
using rows_on = ts::partition<grid, ts::blocks<data>, ts::whole, ts::on<stage, Stage>>;
using samples = ts::tensor<rows_on<0>, ts::shape<batch, ts::dim<6>>, double>;
using labels = ts::tensor<ts::partition<grid, ts::blocks<data>, ts::on<stage, 1>>, ts::shape<batch>, std::int64_t>;

struct classifier {
  constexpr auto operator()(auto x, auto y) const {
    const auto first = tanh(nn::linear<16>{}(x));
    const auto second = tanh(nn::linear<16>{}(first));
    const auto third = tanh(nn::linear<16>{}(ts::to<rows_on<1>>(second)));  // the next stage
    return nn::cross_entropy(nn::linear<3>{}(third), y);
  }
};
using net_type = nn::network<classifier, samples, labels>;
// [end]

// [staged]
template <ts::index_t Out>
struct hidden {
  constexpr auto operator()(auto x) const { return tanh(x | nn::linear<Out>{}); }
};
using layers = nn::chain<hidden<16>, hidden<16>, hidden<16>, nn::linear<3>>;

struct shared_out {
  constexpr auto operator()(auto x, auto y) const {
    return nn::cross_entropy(nn::staged<layers, stage, nn::by_parameters>{}(x), y);
  }
};
static_assert(ts::traffic<nn::network<shared_out, samples, labels>>(ts::bind<batch>(50)) ==
              ts::traffic<net_type>(ts::bind<batch>(50)));  // cut where it was cut by hand
// [end]

// [schedule]
constexpr ts::pipeline::schedule turns{ts::pipeline::order::one_f_one_b, {.stages = 2, .micro_batches = 8}};
static_assert(ts::pipeline::run_of(turns).span == 2 * (8 + 2 - 1));  // it ends, in so many steps
// [end]

struct sets {
  at::Tensor x, y;
};
sets generated(std::int64_t n) {
  const at::Tensor x = at::sin(at::arange(n * 6, at::kDouble).square()).view({n, 6});
  return {x, (x.narrow(1, 0, 3) + x.narrow(1, 3, 3)).argmax(1)};
}

// [train]
std::vector<double> trained(const ts::team<grid>& team, const net_type& net, const sets& all, int steps) {
  nn::pipeline_parallel pipeline(net, "stage", turns, {.rows = ts::pipeline::micro_batch_sizes::uneven});
  torch::optim::Adam optimizer(net.parameters(), 0.02);
  const auto x = ts::distribute<samples>(team, all.x);
  const auto y = ts::distribute<labels>(team, all.y);
  std::vector<double> losses;
  for (int step = 0; step < steps; ++step) {
    optimizer.zero_grad();
    const auto loss = pipeline.forward_backward({x.dynamic(), y.dynamic()})[0];  // the mean over the batch
    nn::clip_grad_norm(net, 1.0);                                                // of the gradients of all stages
    optimizer.step();
    losses.push_back(ts::full_tensor(loss).item<double>());
  }
  return losses;
}
// [end]

// [steps]
constexpr ts::pipeline::schedule by_stages{
    .by = ts::pipeline::order::zb_h1, .of = {.stages = 2, .micro_batches = 8}, .steps = true};

std::vector<double> stepped(const ts::team<grid>& team, const net_type& net, const sets& all, int steps) {
  torch::optim::Adam optimizer(net.parameters(), 0.02);  // a worker has those of its stage
  nn::pipeline_options options{.rows = ts::pipeline::micro_batch_sizes::uneven};
  options.step = [&](const nn::stage_pass&) { optimizer.step(); };
  nn::pipeline_parallel pipeline(net, "stage", by_stages, options);
  const auto x = ts::distribute<samples>(team, all.x);
  const auto y = ts::distribute<labels>(team, all.y);
  std::vector<double> losses;
  for (int step = 0; step < steps; ++step) {
    optimizer.zero_grad();
    const auto loss = pipeline.forward_backward({x.dynamic(), y.dynamic()})[0];  // behind which all have stepped
    losses.push_back(ts::full_tensor(loss).item<double>());
  }
  return losses;
}
// [end]

std::vector<double> trained_serially(const nn::state_dict& begin, const sets& all, int steps, double norm) {
  std::map<std::string, at::Tensor> w;
  std::vector<at::Tensor> leaves;
  for (const auto& [key, one] : begin) leaves.push_back(w[key] = one.clone().set_requires_grad(true));
  torch::optim::Adam optimizer(leaves, 0.02);
  std::vector<double> losses;
  for (int step = 0; step < steps; ++step) {
    optimizer.zero_grad();
    at::Tensor h = all.x;
    for (const char* layer : {"0", "1", "2", "3"}) {
      if (h.size(1) == 16) h = at::tanh(h);
      h = at::linear(h, w.at(std::string(layer) + ".weight"), w.at(std::string(layer) + ".bias"));
    }
    const at::Tensor loss = at::cross_entropy_loss(h, all.y);
    loss.backward();
    torch::nn::utils::clip_grad_norm_(leaves, norm);
    optimizer.step();
    losses.push_back(loss.item<double>());
  }
  return losses;
}

int main(int argc, char** argv) {
  return ts::launch<grid>(argc, argv, [](ts::team<grid>& team) {
    const sets all = generated(50);  // seven rows in two micro-batches, six in the others
    const net_type net{team, ts::seed{7}}, other{team, ts::seed{7}};
    const nn::state_dict begin = nn::state_of(net);
    const std::vector<double> losses = trained(team, net, all, 20), by_stage = stepped(team, other, all, 20);
    const std::vector<double> wanted = trained_serially(begin, all, 20, 1),
                              unclipped = trained_serially(begin, all, 20, 1e9);
    double worst = 0;
    for (std::size_t i = 0; i < losses.size(); ++i)
      worst = std::max({worst, std::abs(losses[i] - wanted[i]), std::abs(by_stage[i] - unclipped[i])});
    if (!(worst < 1e-9)) throw std::runtime_error(fmt::format("losses differ by {}", worst));
    if (!team.first()) return;
    fmt::print("{}", ts::picture(turns));
    fmt::print("loss {:.6f}, then {:.6f}, as in one process to 1e-9\n", losses.front(), losses.back());
  });
}
