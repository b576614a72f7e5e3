// Data parallelism in one program: batches that do not divide, a batch norm, clipping, accumulation, evaluation, a
// file; beside one process.
#include <ATen/CPUGeneratorImpl.h>
#include <torch/nn/utils/clip_grad.h>
#include <torch/optim/sgd.h>
#include <tessera/nn/file/weights_file.hpp>
#include <tessera/tessera.hpp>

#include <filesystem>

namespace ts = tessera;
namespace nn = ts::nn;

// [types]
struct data : ts::axis<4> {};  // the workers that share a batch
using crew = ts::mesh<data>;
struct batch : ts::dyn {};
using samples = ts::tensor<ts::partition<crew, ts::blocks<data>, ts::whole>, ts::shape<batch, ts::dim<6>>, double>;
using labels = ts::tensor<ts::partition<crew, ts::blocks<data>>, ts::shape<batch>, std::int64_t>;

using net_type = nn::sequential<samples, nn::linear<16>, nn::batch_norm<>, nn::relu, nn::linear<3>>;
// [end]

struct sets {
  at::Tensor x, y;
};
sets generated(std::int64_t n) {
  const at::Tensor x = at::sin(at::arange(n * 6, at::kDouble).square()).view({n, 6});
  return {x, (x.narrow(1, 0, 3) + x.narrow(1, 3, 3)).argmax(1)};
}

// [order]
/// The order of an epoch, the same on every worker. A generator of its own draws it, since threads share LibTorch's
/// default one.
at::Tensor order_of(std::int64_t epoch, std::int64_t n) {
  return at::randperm(n, at::make_generator<at::CPUGeneratorImpl>(static_cast<std::uint64_t>(1000 + epoch)));
}
// [end]

constexpr std::int64_t batch_size = 16;

// [train]
std::vector<double> trained(const ts::team<crew>& team, const net_type& net, const sets& all, int epochs) {
  torch::optim::SGD optimizer(net.parameters(), torch::optim::SGDOptions(0.1).momentum(0.9));
  std::vector<double> losses;
  for (int epoch = 0; epoch < epochs; ++epoch) {
    const at::Tensor order = order_of(epoch, all.x.size(0));
    for (std::int64_t begin = 0; begin < order.size(0); begin += batch_size) {
      // the last one is shorter
      const at::Tensor picks = order.narrow(0, begin, std::min(batch_size, order.size(0) - begin));
      optimizer.zero_grad();
      const auto x = ts::distribute<samples>(team, all.x.index_select(0, picks));
      const auto y = ts::distribute<labels>(team, all.y.index_select(0, picks));
      const auto loss = nn::cross_entropy(net(x), y);  // the mean over the whole batch, on every worker
      loss.backward();                                 // gradients of the whole batch, summed over data
      nn::clip_grad_norm(net, 1.0);                    // of all gradients, as one process does
      optimizer.step();
      losses.push_back(ts::item(loss));
    }
  }
  return losses;
}
// [end]

// [accumulate]
/// The gradient of a batch that comes in parts of any sizes: each part's loss counts by its share.
void accumulated(const ts::team<crew>& team, const net_type& net, const sets& all, std::int64_t part) {
  const std::int64_t n = all.x.size(0);
  for (std::int64_t begin = 0; begin < n; begin += part) {
    const std::int64_t count = std::min(part, n - begin);
    const auto x = ts::distribute<samples>(team, all.x.narrow(0, begin, count));
    const auto loss =
        nn::cross_entropy<nn::reduction::sum>(net(x), ts::distribute<labels>(team, all.y.narrow(0, begin, count)));
    (loss / static_cast<double>(n)).backward();
  }
}
// [end]

// [evaluate]
/// The share of labels that are found.
double accuracy(const ts::team<crew>& team, net_type& net, const sets& all) {
  net.eval();
  const at::Tensor scores = ts::full_tensor(net(ts::distribute<samples>(team, all.x)));  // gathered, on every worker
  net.train();
  return scores.argmax(1).eq(all.y).to(at::kDouble).mean().item<double>();
}
// [end]

// The same in one process.
struct serial_net {
  std::map<std::string, at::Tensor> w;
  at::Tensor mean = at::zeros({16}, at::kDouble), variance = at::ones({16}, at::kDouble);

  explicit serial_net(const std::map<std::string, at::Tensor>& begin) {
    for (const auto& [key, one] : begin)
      if (key.find("running") == std::string::npos && one.is_floating_point())
        w[key] = one.clone().set_requires_grad(true);
  }
  std::vector<at::Tensor> parameters() const {
    std::vector<at::Tensor> all;
    for (const auto& [key, one] : w) all.push_back(one);
    return all;
  }
  at::Tensor operator()(const at::Tensor& x) {
    const at::Tensor hidden = at::linear(x, w.at("0.weight"), w.at("0.bias"));
    const at::Tensor even =
        at::batch_norm(hidden, w.at("1.weight"), w.at("1.bias"), mean, variance, true, 0.1, 1e-5, false);
    return at::linear(at::relu(even), w.at("3.weight"), w.at("3.bias"));
  }
};
std::vector<double> trained_serially(serial_net net, const sets& all, int epochs) {
  torch::optim::SGD optimizer(net.parameters(), torch::optim::SGDOptions(0.1).momentum(0.9));
  std::vector<double> losses;
  for (int epoch = 0; epoch < epochs; ++epoch) {
    const at::Tensor order = order_of(epoch, all.x.size(0));
    for (std::int64_t begin = 0; begin < order.size(0); begin += batch_size) {
      const at::Tensor picks = order.narrow(0, begin, std::min(batch_size, order.size(0) - begin));
      optimizer.zero_grad();
      const at::Tensor loss = at::cross_entropy_loss(net(all.x.index_select(0, picks)), all.y.index_select(0, picks));
      loss.backward();
      torch::nn::utils::clip_grad_norm_(net.parameters(), 1.0);
      optimizer.step();
      losses.push_back(loss.item<double>());
    }
  }
  return losses;
}

int main(int argc, char** argv) {
  return ts::launch<crew>(argc, argv, [](ts::team<crew>& team) {
    // 16, 16, 16 and 2: two workers without a sample at last
    const sets all = generated(50);
    net_type net{team, ts::seed{7}};
    const serial_net beside(nn::state_of(net));
    const std::vector<double> losses = trained(team, net, all, 3);
    const std::vector<double> wanted = trained_serially(beside, all, 3);
    double worst = 0;
    for (std::size_t i = 0; i < losses.size(); ++i) worst = std::max(worst, std::abs(losses[i] - wanted[i]));
    if (!(worst < 1e-9)) throw std::runtime_error(fmt::format("losses differ by {}", worst));

    // [file]
    const std::filesystem::path file = "data_parallel.weights";
    nn::save(net, file);  // one file, with the keys of the serial model
    net_type again{team, ts::seed{1}};
    nn::load(again, file);  // by any number of workers
    // [end]
    const double found = accuracy(team, net, all);
    if (accuracy(team, again, all) != found) throw std::runtime_error("a file that loads into something else");
    for (const at::Tensor& w : again.parameters()) w.mutable_grad().reset();
    accumulated(team, again, all, 20);
    nn::agree_on_copies(net);  // every worker steps the same weights
    if (team.first()) fmt::print("loss {:.6f}, accuracy {:.2f}, as in one process to 1e-9\n", losses.back(), found);
  });
}
