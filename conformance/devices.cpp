#include "devices.hpp"

#include "tests/support/device/torch_device.hpp"

#include <tessera/comm/nccl/over_nccl.hpp>
#include <tessera/tensor/staged_transport.hpp>
#include <tessera/tensor/torch_boxes.hpp>

namespace conformance {

using namespace tessera;

std::string launched(lying where, const std::function<std::string(const transport_layer&)>& launch) {
  if (where == lying::on_host) return launch({});
  const testing::device_machine machine;
  const c10::DeviceType kind = testing::torch_device(0).type();
  const std::string failed = launch(where == lying::over_nccl ? over_nccl(std::make_shared<torch_boxes>(kind)) : through_host(kind));
  return failed.empty() && machine.kept() != 0 ? "something of the devices is not given back" : failed;
}

}  // namespace conformance
