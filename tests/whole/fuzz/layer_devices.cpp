#include "layers.hpp"
#include "tests/support/device/torch_device.hpp"

#include <tessera/comm/nccl/exchange.hpp>
#include <tessera/tensor/device/staged_transport.hpp>
#include <tessera/tensor/device/torch_boxes.hpp>

namespace tessera::testing::fuzz {

using namespace engine;

std::string judge_layer_on_devices(const layer_case& c, long& refused) {
  const device_machine machine(c.salt);
  const auto boxes = [&]() -> std::shared_ptr<device_boxes> {
    if (c.salt % 4 < 2) return std::make_shared<late_boxes>();
    return std::make_shared<torch_boxes>(torch_device(0).type());
  };
  const std::string why = judge_layer(c, refused, [&](const std::shared_ptr<transport>& host) {
    std::shared_ptr<transport> carrier;
    if (c.salt % 3 == 0) carrier = std::make_shared<staged_transport>(host, torch_device(0).type());
    else carrier = std::make_shared<nccl_transport>(host, boxes(), nccl_options{});
    cudaSetDevice(carrier->traits().tensors.index);
    return carrier;
  });
  return why.empty() && machine.kept() != 0 ? "devices: something is not given back" : why;
}

}  // namespace tessera::testing::fuzz
