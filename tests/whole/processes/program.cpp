// A program of several processes that torchrun's variables start; check.py sees how it ends, as the first argument
// says.
#include "tests/support/training.hpp"

#include "tests/support/device/torch_device.hpp"

#include <tessera/comm/nccl/over_nccl.hpp>
#include <tessera/tensor/device/staged_transport.hpp>
#include <tessera/tensor/device/torch_boxes.hpp>
#include <tessera/tensor/store_rendezvous.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include <csignal>
#include <cstdio>

namespace ts = tessera;

namespace {

/// A network that trains to what a serial run comes to, twice, as a program may launch again.
template <int R, int C>
int train(int argc, char** argv, const ts::launch_options& options) {
  using grid = typename ts::testing::classifier<R, C>::grid;
  int status = 0;
  for (int launch = 0; launch < 2 && status == 0; ++launch)
    status = ts::launch<grid>(argc, argv, options, [](ts::team<grid>& workers) {
      const auto carrier = workers.state()->shared_carrier();
      const double off = ts::testing::difference<R, C>(carrier);
      if (!(off < 1e-12)) throw std::runtime_error(fmt::format("off by {}", off));
      if (workers.first()) fmt::print("{} over {}\n", carrier->traits().name, carrier->host().traits().name);
    });
  return status;
}

/// Sums without end; what the second worker does after a while is the fault.
template <int R, int C>
int sum_for_ever(int argc, char** argv, const ts::launch_options& options, const std::string& fault) {
  using grid = typename ts::testing::classifier<R, C>::grid;
  return ts::launch<grid>(argc, argv, options, [&](ts::team<grid>& workers) {
    for (int turn = 0;; ++turn) {
      workers.state()->agree(static_cast<std::uint64_t>(turn));
      if (turn != 1000 || workers.rank() != 1) continue;
      if (fault == "is killed") std::raise(SIGKILL);
      if (fault == "throws") throw std::runtime_error("out of paper");
      if (fault == "exits") std::exit(0);
      if (fault == "leaves") return;
      if (fault == "is stuck") std::this_thread::sleep_for(std::chrono::seconds(30));
    }
  });
}

/// Takes as many workers as the launcher started, whatever the program says of threads.
int count(int argc, char** argv, int started) {
  return ts::launch(argc, argv, {.threads = 7}, "worker", [&](const ts::team_handle& team) {
    const std::vector<std::uint64_t> all = team->collect(static_cast<std::uint64_t>(team->rank()));
    for (int i = 0; i < started; ++i)
      if (team->size() != started || all[static_cast<std::size_t>(i)] != static_cast<std::uint64_t>(i))
        throw std::runtime_error(fmt::format("{} workers, not {}", team->size(), started));
    const auto carrier = team->shared_carrier();
    if (team->rank() == 0) fmt::print("{} over {}\n", carrier->traits().name, carrier->host().traits().name);
  });
}

/// Serves the store as torchrun's agent does, until nobody writes to it any more.
int serve(const ts::engine::launch_environment& started) {
  c10d::TCPStoreOptions options;
  options.port = static_cast<std::uint16_t>(started.port.value());
  options.isServer = true;
  options.waitWorkers = false;
  const c10d::TCPStore store("127.0.0.1", options);
  std::puts("ready");
  std::fflush(stdout);
  while (std::getchar() != EOF) continue;
  return 0;
}

template <int R, int C>
int run(int argc, char** argv) {
  const std::string how = argv[1];
  ts::launch_options options;
  options.time_limit = std::chrono::seconds(how == "is stuck" || how == "waits in vain" ? 2 : 20);
  if (how == "trains by name") options.transport = tessera::transport_choice::tcp;
  const c10::DeviceType devices = ts::testing::torch_device(0).type();
  if (how == "trains on devices through hosts") options.over = ts::through_host(devices);
  if (how == "trains on devices over NCCL") options.over = ts::over_nccl(std::make_shared<ts::torch_boxes>(devices));
  if (how.starts_with("trains") || how == "waits in vain") return train<R, C>(argc, argv, options);
  return sum_for_ever<R, C>(argc, argv, options, how);
}

}  // namespace

int main(int argc, char** argv) {
  const ts::testing::device_machine machine;
  const ts::engine::launch_environment started = ts::read_environment();
  if (argv[1] == std::string_view("serves")) return serve(started);
  if (argv[1] == std::string_view("counts")) return count(argc, argv, started.world);
  switch (started.world) {
    case 2: return run<1, 2>(argc, argv);
    case 4: return run<2, 2>(argc, argv);
    default: return run<1, 1>(argc, argv);
  }
}
