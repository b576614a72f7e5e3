// A network on the devices of this machine comes to what it comes to on the host: through the hosts, in threads or
// processes that may share a device; over NCCL, in threads with one each or in processes. Without a device it says so
// and is skipped.

#include "here.hpp"

#include "tests/support/pipelines.hpp"
#include "tests/support/trained_network.hpp"

#include <tessera/comm/nccl/over_nccl.hpp>
#include <tessera/tensor/device/staged_transport.hpp>
#include <tessera/tensor/device/torch_boxes.hpp>
#include <tessera/tensor/launch.hpp>

#include <ATen/Parallel.h>

#include <unistd.h>
#include <mutex>

using namespace tessera;
using namespace tessera::engine;
using namespace tessera::testing;

namespace {

constexpr int skipped = 77;

/// What differs in the losses and gradients of a network on two stages of two workers.
std::string in_pipelines(const team_handle& t) {
  using pipeline::order;
  mesh_value grid;
  grid.axes.push({text("data"), 2, 2});
  grid.axes.push({text("stage"), 2, 1});
  const team_handle stages = t->over(grid);
  return pipelined::differs(stages, pipeline::schedule{order::one_f_one_b, {2, 4}}, 10, true) +
         pipelined::differs(stages, pipeline::schedule{order::interleaved, {2, 3, 2}}, 6) +
         pipelined::differs(stages, pipeline::schedule{order::zb_h1, {2, 4}}, 8);
}

/// What goes wrong where the workers of a launch with these options train the network, beside those of the host.
std::string differs(int argc, char** argv, const launch_options& options, const nn::state_dict& host,
                    const std::string& file) {
  std::string wrong;
  std::mutex one_at_a_time;
  const int status = launch<ship>(argc, argv, options, [&](team<ship>& t) {
    std::string mine;
    for (const auto& [key, one] : trained(t, device_of(t), file))
      if (!at::allclose(one, host.at(key), 1e-9, 1e-11)) mine += key + " differs; ";
    mine += in_pipelines(t.state());
    const std::scoped_lock now(one_at_a_time);
    if (wrong.empty()) wrong = mine;
  });
  return status == 0 ? wrong : "the launch failed";
}

}  // namespace

int main(int argc, char** argv) {
  const devices_here devices;
  const launch_environment launched = read_environment();
  const auto kind = devices.torch_kind();
  if (devices_seen() == 0 || !kind) {
    if (launched.rank == 0)
      fmt::print("skipped: {}\n", kind ? "this machine has no device" : devices.why_without_torch());
    return skipped;
  }
  at::set_num_threads(1);
  share_devices(launched);
  const int job = launched.by == launcher::none ? ::getpid() : ::getppid();
  const std::string file = std::filesystem::temp_directory_path() / fmt::format("tessera_on_gpus_{}", job);
  nn::state_dict host;
  launch_options options;
  options.time_limit = std::chrono::seconds{100};
  std::mutex first;
  if (const int status = launch<ship>(argc, argv, options,
                                      [&](team<ship>& t) {
                                        nn::state_dict mine = trained(t, at::kCPU, file);
                                        const std::scoped_lock now(first);
                                        if (host.empty()) host = std::move(mine);
                                      });
      status != 0)
    return status;
  const bool has_one_each = launched.by != launcher::none || devices_seen() >= ship::value.size();
  int tried = 0;
  for (const bool by_nccl : {false, true}) {
    if (by_nccl && !has_one_each) continue;
    options.over = by_nccl ? over_nccl(std::make_shared<torch_boxes>(*kind)) : through_host(*kind);
    for (const bool checked : {false, true}) {
      options.checked = checked;
      const std::string wrong = differs(argc, argv, options, host, file);
      if (!wrong.empty()) {
        fmt::print(stderr, "worker {}, {}{}: {}\n", launched.rank, by_nccl ? "over NCCL" : "through the hosts",
                   checked ? ", checked" : "", wrong);
        return 1;
      }
      ++tried;
    }
  }
  if (launched.rank == 0) {
    std::filesystem::remove(file);
    fmt::print("4 workers train on {} devices what they train on the host, in pipelines too, in {} ways\n",
               devices_seen(), tried);
  }
  return devices.have_all_back() ? 0 : 1;
}
