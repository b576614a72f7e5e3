// Samples in batches, each worker its own: a data set of LibTorch, a file of tokens, and a run that goes on inside an
// epoch. It fails unless the second half of the run reads what the first would have read.
#include <torch/optim/sgd.h>
#include <tessera/nn/data/loader.hpp>
#include <tessera/nn/data/token_file.hpp>
#include <tessera/nn/file/atomic_file.hpp>
#include <tessera/tessera.hpp>

namespace ts = tessera;
namespace nn = ts::nn;

// [dataset]
using sample = torch::data::Example<at::Tensor, std::int64_t>;

/// Samples by number: any data set of LibTorch that has a get(i) and a size().
struct waves : torch::data::datasets::Dataset<waves, sample> {
  sample get(std::size_t i) override {
    const at::Tensor x = at::sin((at::arange(6, at::kDouble) + 6 * static_cast<double>(i)).square());
    return {x, (x.narrow(0, 0, 3) + x.narrow(0, 3, 3)).argmax().item<std::int64_t>()};
  }
  std::optional<std::size_t> size() const override { return 101; }
};
// [end]

// [types]
struct data : ts::axis<4> {};  // the workers that share a batch
using crew = ts::mesh<data>;
struct batch : ts::dyn {};
using inputs = ts::tensor<ts::partition<crew, ts::blocks<data>, ts::whole>, ts::shape<batch, ts::dim<6>>, double>;
using labels = ts::tensor<ts::partition<crew, ts::blocks<data>>, ts::shape<batch>, std::int64_t>;
using net_type = nn::sequential<inputs, nn::linear<16>, nn::relu, nn::linear<3>>;
// [end]

// [train]
/// Trains to the end of an epoch, from wherever the loader stands; gives the losses.
std::vector<double> trained(const net_type& net, nn::loader<inputs, labels>& samples) {
  torch::optim::SGD optimizer(net.parameters(), torch::optim::SGDOptions(0.1));
  std::vector<double> losses;
  for (auto& [x, y] : samples.epoch()) {  // seven steps: six of 16 samples, the last one of 5
    optimizer.zero_grad();
    const auto loss = nn::cross_entropy(net(x), y);
    loss.backward();
    optimizer.step();
    losses.push_back(ts::item(loss));
  }
  return losses;
}
// [end]

std::vector<double> whole_run(const ts::team<crew>& team) {
  // [loader]
  net_type net{team, ts::seed{7}};
  nn::loader<inputs, labels> samples(team, waves(), {.batch = 16, .seed = {7}, .ahead = 1});
  std::vector<double> losses = trained(net, samples);
  // [end]
  const std::vector<double> second = trained(net, samples);
  losses.insert(losses.end(), second.begin(), second.end());
  return losses;
}

std::vector<double> resumed_run(const ts::team<crew>& team) {
  nn::state_dict weights, place;
  std::vector<double> losses;
  {
    net_type net{team, ts::seed{7}};
    nn::loader<inputs, labels> samples(team, waves(), {.batch = 16, .seed = {7}});
    losses = trained(net, samples);
    torch::optim::SGD optimizer(net.parameters(), torch::optim::SGDOptions(0.1));
    for (int step = 0; step < 3; ++step) {
      const auto next = samples.next();
      optimizer.zero_grad();
      const auto loss = nn::cross_entropy(net(next->data), next->target);
      loss.backward();
      optimizer.step();
      losses.push_back(ts::item(loss));
    }
    weights = nn::state_of(net);
    // [state]
    place = samples.state();  // epoch 1, sample 48: small tensors, as a checkpoint keeps them
    // [end]
  }
  net_type net{team, ts::seed{1}};
  nn::assign(net, weights);
  // [resume]
  nn::loader<inputs, labels> samples(team, waves(), {.batch = 16});
  samples.load_state(place);  // its seed goes on too
  // [end]
  const std::vector<double> rest = trained(net, samples);
  losses.insert(losses.end(), rest.begin(), rest.end());
  return losses;
}

/// The bytes of a text as tokens; gives how many a worker has read.
std::int64_t read_tokens(const ts::team<crew>& team, const std::string& path) {
  std::int64_t own = 0;
  // [tokens]
  const nn::token_file text(team, path, {.length = 8});  // uint16, as train.bin of nanoGPT
  nn::loader windows(team, text, {.batch = 6, .cut_by = {"data"}});
  for (auto& [x, y] : windows.epoch()) {  // 6 x 8 int64 each: tokens, and the next ones
    own += x.local().numel();             // of this worker: 1 or 2 samples
  }
  // [end]
  return own;
}

int main(int argc, char** argv) {
  return ts::launch<crew>(argc, argv, [](ts::team<crew>& team) {
    if (whole_run(team) != resumed_run(team)) throw std::runtime_error("the run went on elsewhere");
    const std::string path = "tokens.bin";
    if (team.first()) {
      std::string bytes;
      for (int i = 0; i < 2 * 1000; ++i) bytes.push_back(static_cast<char>(i * 7 % 251));
      ts::write_whole(path, bytes);
    }
    ts::print_in_order(team, "");  // it is written
    const std::int64_t mine = read_tokens(team, path);
    ts::print_in_order(team, fmt::format("worker {} has read {} tokens", team.rank(), mine));
  });
}
