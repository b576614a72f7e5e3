#include "exchanges.hpp"
#include "tests/support/device/machine.hpp"

#include <tessera/comm/nccl/exchange.hpp>

namespace tessera::testing::fuzz {

using namespace engine;

std::string judge_on_devices(const fuzz_case& c) {
  const device_machine machine(c.salt);
  const std::string why = judge_exchange(c, [](const std::shared_ptr<transport>& host) {
    return std::make_shared<nccl_transport>(host, std::make_shared<late_boxes>(true), nccl_options{.host_waits = true});
  });
  return why.empty() && machine.kept() != 0 ? "devices: something is not given back" : why;
}

}  // namespace tessera::testing::fuzz
