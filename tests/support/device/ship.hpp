#pragma once
// Four workers with a device each, of a machine of none.

#include "torch_device.hpp"

#include "tests/support/tensors.hpp"
#include "tests/support/trained_network.hpp"

#include <tessera/comm/nccl/exchange.hpp>
#include <tessera/tensor/device/staged_transport.hpp>
#include <tessera/tensor/device/torch_boxes.hpp>

namespace tessera::testing {

using namespace engine;

/// What carries the boxes of a ship.
inline const std::pair<const char*, carried> ways[]{
    {"over NCCL",
     [](const std::shared_ptr<transport>& host) {
       const nccl_options options{.stream = [] { return torch_boxes(torch_device(0).type()).current(); }};
       return std::make_shared<nccl_transport>(host, std::make_shared<late_boxes>(), options);
     }},
    {"through the hosts", [](const std::shared_ptr<transport>& host) {
       return std::make_shared<staged_transport>(host, torch_device(0).type());
     }}};

/// f(team, device) on four workers with a device each, whatever carries their boxes: what each finds wrong.
template <class F>
void on_ship(const F& f) {
  for (const auto& [way, carry] : ways) {
    INFO(way);
    device_machine machine;
    const auto all = on_workers(4, [&, &carry = carry](const std::shared_ptr<transport>& host) {
      const auto carrier = carry(host);
      const c10::Device device = torch_device(carrier->traits().tensors.index);
      const c10::DeviceGuard here(device);
      std::string wrong;
      {
        team<ship> t(std::make_shared<team_state>(carrier, ship::value));
        wrong = f(t, device);
      }
      carrier->synchronise();
      return wrong;
    });
    CHECK(machine.kept() == 0);
    INFO(all.errors());
    REQUIRE(all.well());
    for (int r = 0; r < 4; ++r) CHECK(all.of(r) == "");
  }
}

}  // namespace tessera::testing
