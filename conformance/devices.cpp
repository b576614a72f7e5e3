#include "devices.hpp"

#include "tests/whole/gpu/here.hpp"

#include <tessera/comm/nccl/over_nccl.hpp>
#include <tessera/tensor/device/staged_transport.hpp>
#include <tessera/tensor/device/torch_boxes.hpp>

namespace conformance {

using namespace tessera;
using namespace tessera::engine;

std::string launched(lying where, const std::function<std::string(const transport_layer&)>& launch) {
  if (where == lying::on_host) return launch({});
  const testing::devices_here devices(64);  // one for each worker of most cases, where they are those of none
  const auto kind = devices.torch_kind();
  if (!kind || testing::devices_seen() == 0) return kind ? "no device" : devices.why_without_torch();
  testing::share_devices(read_environment());
  const bool by_nccl = where == lying::over_nccl;
  const std::string failed = launch(by_nccl ? over_nccl(std::make_shared<torch_boxes>(*kind)) : through_host(*kind));
  return failed.empty() && !devices.have_all_back() ? "something of the devices is not given back" : failed;
}

}  // namespace conformance
