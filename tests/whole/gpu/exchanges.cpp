// What must hold on every transport, between devices: of threads with one each, or, under a launcher, of processes,
// which may be more than the devices. Without a device it says so and is skipped.

#include "bare_boxes.hpp"
#include "brought.hpp"
#include "here.hpp"

#include "tests/support/elements.hpp"
#include "tests/support/exchanged.hpp"

#include <tessera/comm/workers.hpp>
#include <tessera/tensor/store_rendezvous.hpp>

#include <ATen/Parallel.h>

#include <stdexcept>

using namespace tessera;
using namespace tessera::engine;
using namespace tessera::testing;

namespace {

constexpr int skipped = 77;

/// What is wrong with exchanges of a worker whose boxes these are, one after the other and, unless its host waits in
/// them, several at a time.
std::string wrong_with(const std::shared_ptr<transport>& host, const std::shared_ptr<device_boxes>& boxes, bool waits) {
  std::string wrong;
  for (const bool library_sums : {false, true}) {
    const auto between = std::make_shared<nccl_transport>(host, boxes, nccl_options{.library_sums = library_sums});
    const current_device here(between->device());
    const auto carrier = std::make_shared<brought_transport>(between, boxes->current());
    transport& c = *carrier;
    wrong += every_collective(c, 12 * c.size());
    if (library_sums) continue;  // which come in another order and precision than the host's
    wrong += every_move(c) + every_fold(c) + moves_and_transposes_here(c, 60, 7);
    if (!waits) wrong += under_way_together(c);
  }
  return wrong;
}

}  // namespace

int main(int argc, char** argv) {
  const devices_here devices;
  const launch_environment launched = read_environment();
  if (devices_seen() == 0) {
    if (launched.rank == 0) fmt::print("skipped: this machine has no device\n");
    return skipped;
  }
  const bool processes = launched.by != launcher::none;
  share_devices(launched);
  const std::optional<c10::DeviceType> torch_kind = devices.torch_kind();
  mesh_value line;
  line.axes.push({text{"worker"}, processes ? launched.world : std::min(devices_seen(), 4), 1});
  launch_options options;
  options.time_limit = std::chrono::seconds{100};
  options.meet = store_rendezvous;
  const int status = run_workers(argc, argv, options, line, [&](const std::shared_ptr<transport>& host) {
    at::set_num_threads(1);
    const auto insist = [&](const char* what, const std::shared_ptr<device_boxes>& boxes, bool waits = false) {
      const std::string wrong = wrong_with(host, boxes, waits);
      if (!wrong.empty()) throw std::runtime_error(fmt::format("{}: {}", what, wrong));
    };
    insist("boxes without kernels", std::make_shared<bare_boxes>());
    if (torch_kind) insist("LibTorch's boxes", std::make_shared<torch_boxes>(*torch_kind), devices.torch_waits);
  });
  if (status == 0 && launched.rank == 0)
    fmt::print("{} workers on {} devices are right, with boxes without kernels{}\n", line.size(), devices_seen(),
               torch_kind ? " and LibTorch's" : "; LibTorch's are not tried: " + devices.why_without_torch());
  return status != 0 || devices.have_all_back() ? status : 1;
}
