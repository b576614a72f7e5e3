#include "tests/support/training.hpp"

#include <tessera/comm/mpi/exchange.hpp>
#include <tessera/nn/file/weights_file.hpp>
#include <tessera/tensor/device/staged_transport.hpp>

#include <unistd.h>
#include <boost/mpi/collectives/broadcast.hpp>
#include <boost/serialization/string.hpp>
#include <filesystem>

#include "tests/support/device/torch_device.hpp"
#include "tests/support/everywhere.hpp"
#include "tests/support/stepped_pipelines.hpp"

using namespace tessera;
using namespace tessera::engine;
using namespace tessera::testing;

namespace {

/// What goes wrong with weights that R x C processes save in the middle of training and the same processes load as C x
/// R.
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
  const auto x = distribute<typename K::input>(workers, global_of({11, 7}, numbers{4}));
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
  const auto loaded_without = [&](int rank) {  // what is said where this one is in a folder that has no such file
    std::filesystem::current_path(ranks.rank() == rank ? "/" : std::filesystem::path(path).parent_path());
    const std::string said = said_by([&] { nn::load(same, name); });
    std::filesystem::current_path(here_now);
    return said;
  };
  const std::string missing = loaded_without(0);  // the first worker reads for all
  if (missing.find("[tessera.file.missing]") != 0 || missing.find("[" + name + ": No such file") == std::string::npos)
    wrong += "a missing file: " + missing + "; ";
  if (ranks.size() > 1 && !loaded_without(ranks.size() - 1).empty()) wrong += "the last worker needs the file; ";
  nn::state_dict drifted = here;
  if (last) drifted["2.bias"] = drifted["2.bias"] + 1;
  const std::string differs = said_by([&] { nn::assign(same, drifted); });
  if (ranks.size() > 1 &&
      (differs.find("[tessera.agree.copies]") != 0 || differs.find("[2.bias]") == std::string::npos))
    wrong += "another state dict: " + differs + "; ";
  ranks.barrier();
  if (last) std::filesystem::remove(path);
  return wrong;
}

}  // namespace

TEST_CASE(
    "weights saved in the middle of training load on another mesh over MPI, bit for bit; a file that is not there is "
    "told on all",
    "[refusal][runtime]") {
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

TEST_CASE("a network trains over MPI to the losses and weights of a serial run", "[gradient]") {
  judge_training(std::make_shared<mpi_transport>(boost::mpi::communicator{}));
}

TEST_CASE("a pipeline's losses, gradients and steps over MPI are those of the network", "[gradient]") {
  using pipeline::order;
  const boost::mpi::communicator ranks;
  prepare_worker();
  mesh_value line;
  line.axes.push({text("stage"), ranks.size(), 1});
  const auto t = std::make_shared<team_state>(std::make_shared<mpi_transport>(ranks), line);
  std::string wrong;
  for (const order by : {order::gpipe, order::one_f_one_b, order::zb_h1})
    wrong += pipelined::differs(t, pipeline::schedule{by, {ranks.size(), 4}}, 8);
  for (const order by : {order::one_f_one_b, order::zb_h1})
    wrong +=
        pipelined::stepped_differently(t, pipeline::schedule{by, {ranks.size(), 4}, true}, 8, pipelined::stepping::own);
  if (ranks.size() <= 3)
    wrong += pipelined::differs(t, pipeline::schedule{order::interleaved, {ranks.size(), 5, 2}}, 10);
  const bool right = everywhere(ranks, wrong.empty());
  INFO(wrong);
  CHECK(right);
}

TEST_CASE("a network on devices trains over MPI through their hosts to the losses and weights of a serial run",
          "[gradient]") {
  const device_machine machine;
  const auto carrier = std::make_shared<staged_transport>(std::make_shared<mpi_transport>(boost::mpi::communicator{}),
                                                          torch_device(0).type());
  const c10::DeviceGuard here(carrier->device());
  judge_training(carrier);
}
