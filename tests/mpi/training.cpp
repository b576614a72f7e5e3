#include <torch/nn/utils/clip_grad.h>

#include "tests/support/tensors.hpp"

#include <tessera/comm/mpi_exchange.hpp>
#include <tessera/nn/weights_file.hpp>
#include <tessera/tensor/staged_transport.hpp>
#include <torch/optim/sgd.h>

#include <boost/mpi/collectives/broadcast.hpp>
#include <boost/serialization/string.hpp>
#include <filesystem>
#include <unistd.h>

#include "tests/support/device/torch_device.hpp"
#include "tests/support/everywhere.hpp"

using namespace tessera;
using namespace tessera::testing;

namespace {

struct trained_batch : dyn {};

/// A small classifier on R x C workers, its samples cut over rows and its features over columns.
template <int R, int C>
struct classifier {
  struct rows : axis<R> {};
  struct columns : axis<C> {};
  using grid = mesh<rows, columns>;
  using input = tensor<partition<grid, blocks<rows>, blocks<columns>>, shape<trained_batch, dim<7>>, double>;
  using labels = tensor<partition<grid, blocks<rows>, invariant<columns>>, shape<trained_batch>, std::int64_t>;
  using net = nn::sequential<input, nn::linear<9>, nn::relu, nn::linear<5>>;
};

/// The largest difference of losses, gradient norms and final weights from a serial run, over a few steps.
template <int R, int C>
double difference(const std::shared_ptr<transport>& carrier) {
  using K = classifier<R, C>;
  const team<typename K::grid> workers(carrier);
  const c10::Device device = device_of(workers);
  typename K::net net{workers, seed{3}};
  const at::Tensor images = global_of({11, 7}, numbers{4});
  const at::Tensor labels = at::arange(11, at::kLong).mul(3).remainder(5);
  nn::state_dict serial = nn::state_of(net);
  std::vector<at::Tensor> w;
  for (const char* key : {"0.weight", "0.bias", "2.weight", "2.bias"}) w.push_back(serial.at(key).cpu().requires_grad_(true));

  const torch::optim::SGDOptions options = torch::optim::SGDOptions(0.2).momentum(0.9);
  torch::optim::SGD ours(net.parameters(), options);
  torch::optim::SGD theirs(w, options);
  const auto x = take<typename K::input>(workers, images.to(device));
  const auto y = take<typename K::labels>(workers, labels.to(device));
  double worst = 0;
  for (const initial_value& v : {init::normal(), init::truncated_normal(), init::orthogonal(), init::sparse(0.5), init::xavier_uniform()}) {
    const auto everywhere = initial<tensor<partition<typename K::grid, whole, whole>, shape_of<11, 7>, double>>(workers, v, seed{1}, "w");
    const auto parts = initial<typename K::input>(workers, v, seed{1}, "w", bind<trained_batch>(11));
    if (!same_bits(global(parts).cpu(), everywhere.local().cpu())) return 1;  // initial values are the same bits
  }
  for (int step = 0; step < 4; ++step) {
    ours.zero_grad();
    theirs.zero_grad();
    const auto loss = nn::cross_entropy(net(x), y);
    const at::Tensor expected = at::cross_entropy_loss(at::linear(at::relu(at::linear(images, w[0], w[1])), w[2], w[3]), labels);
    loss.backward();
    expected.backward();
    worst = std::max(worst, std::abs(value(loss) - expected.item<double>()));
    const double norm = torch::nn::utils::clip_grad_norm_(w, 0.1);
    worst = std::max(worst, std::abs(nn::clip_grad_norm(net, 0.1) / norm - 1));
    ours.step();
    theirs.step();
  }
  const nn::state_dict final_weights = nn::state_of(net);
  int i = 0;
  for (const char* key : {"0.weight", "0.bias", "2.weight", "2.bias"})
    worst = std::max(worst, (final_weights.at(key).cpu() - w[static_cast<std::size_t>(i++)]).abs().max().item<double>());
  return worst;
}

/// What goes wrong with weights that R x C processes save in the middle of training and the same processes load as C x R.
template <int R, int C>
std::string saved_and_loaded(const boost::mpi::communicator& ranks, const std::shared_ptr<transport>& carrier) {
  using K = classifier<R, C>;
  using L = classifier<C, R>;
  const team<typename K::grid> workers(carrier);
  const team<typename L::grid> others(carrier);
  std::string path = (std::filesystem::temp_directory_path() / fmt::format("tessera_mpi_{}", ::getpid())).string();
  boost::mpi::broadcast(ranks, path, 0);
  const auto said_by = [](auto&& f) {
    try {
      f();
    } catch (const error& e) {
      return std::string(e.what());
    }
    return std::string();
  };
  typename K::net net{workers, seed{3}};
  typename L::net same{others, seed{4}};
  torch::optim::SGD optimizer(net.parameters(), torch::optim::SGDOptions(0.2));
  const auto x = take<typename K::input>(workers, global_of({11, 7}, numbers{4}));
  for (int step = 0; step < 2; ++step) {
    optimizer.zero_grad();
    const auto y = net(x);
    sum(y * y).backward();
    optimizer.step();
  }
  std::string wrong;
  nn::save(net, path);
  nn::load(same, path);
  const nn::state_dict here = nn::state_of(net);
  const nn::state_dict there = nn::state_of(same);
  for (const auto& [key, w] : here)
    if (!same_bits(w, there.at(key))) wrong += key + " differs; ";

  const bool last = ranks.rank() + 1 == ranks.size();
  const std::filesystem::path here_now = std::filesystem::current_path();
  const std::string name = std::filesystem::path(path).filename();
  std::filesystem::current_path(last ? "/" : std::filesystem::path(path).parent_path());
  const std::string missing = said_by([&] { nn::load(same, name); });
  std::filesystem::current_path(here_now);
  const std::string who = ranks.size() == 1 ? "" : label_of(others.state()->mesh(), ranks.size() - 1) + ": ";
  if (missing.find("[tessera.file.missing]") != 0 || missing.find("[" + who + name + ": No such file") == std::string::npos)
    wrong += "a missing file: " + missing + "; ";
  nn::state_dict drifted = here;
  if (last) drifted["2.bias"] = drifted["2.bias"] + 1;
  const std::string differs = said_by([&] { nn::assign(same, drifted); });
  if (ranks.size() > 1 && (differs.find("[tessera.agree.copies]") != 0 || differs.find("[2.bias]") == std::string::npos))
    wrong += "another state dict: " + differs + "; ";
  ranks.barrier();
  if (last) std::filesystem::remove(path);
  return wrong;
}

}  // namespace

TEST_CASE("weights saved in the middle of training load on another mesh over MPI, bit for bit; who has no file is named") {
  const boost::mpi::communicator ranks;
  const auto carrier = std::make_shared<mpi_transport>(ranks);
  prepare_worker();
  std::string wrong;
  switch (ranks.size()) {
    case 1: wrong = saved_and_loaded<1, 1>(ranks, carrier); break;
    case 2: wrong = saved_and_loaded<1, 2>(ranks, carrier); break;
    case 4: wrong = saved_and_loaded<4, 1>(ranks, carrier); break;
    case 6: wrong = saved_and_loaded<3, 2>(ranks, carrier); break;
  }
  const bool right = everywhere(ranks, wrong.empty());
  INFO(wrong);
  CHECK(right);
}

namespace {

/// Whether a network trains on all ranks to what a serial run comes to, its boxes carried so.
void judge_training(const std::shared_ptr<transport>& carrier) {
  const boost::mpi::communicator ranks;
  prepare_worker();
  double off = 1;
  switch (ranks.size()) {
    case 1: off = difference<1, 1>(carrier); break;
    case 2: off = difference<1, 2>(carrier); break;
    case 4: off = difference<2, 2>(carrier); break;
    case 6: off = difference<3, 2>(carrier); break;
    default: off = difference<1, 1>(carrier);
  }
  const bool right = everywhere(ranks, off < 1e-12);
  INFO("off by " << off);
  CHECK(right);
}

}  // namespace

TEST_CASE("a network trains over MPI to the losses and weights of a serial run") {
  judge_training(std::make_shared<mpi_transport>(boost::mpi::communicator{}));
}

TEST_CASE("a network on devices trains over MPI through their hosts to the losses and weights of a serial run") {
  const device_machine machine;
  const auto carrier = std::make_shared<staged_transport>(std::make_shared<mpi_transport>(boost::mpi::communicator{}), torch_device(0).type());
  const c10::DeviceGuard here(carrier->device());
  judge_training(carrier);
}
