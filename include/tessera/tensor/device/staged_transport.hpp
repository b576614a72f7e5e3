#pragma once

#include <tessera/comm/device/device_transport.hpp>
#include <tessera/comm/workers.hpp>
#include <tessera/tensor/device/staged_exchange.hpp>

#include <memory>
#include <optional>
#include <utility>

namespace tessera {

namespace engine {

/// Carries boxes between tensors on devices through host memory, over any host transport. It serves every kind of
/// device that LibTorch has, without another library.
///
/// The host waits for the device at the start of a call that sends something, and at the end of one that receives
/// something.
class staged_transport final : public device_transport {
 public:
  staged_transport(std::shared_ptr<transport> host, c10::DeviceType kind, std::optional<int> device = {})
      : device_transport(std::move(host)),
        devices_(kind),
        device_(kind, static_cast<c10::DeviceIndex>(device_among(devices_.deviceCount(), device))) {}

  transport_traits traits() const override {
    return {"staged", false, {static_cast<int>(device_.type()), device_.index()}};
  }

  c10::Device device() const { return device_; }

  std::uint64_t offer(const exchange_plan& plan) override { return host_->offer(plan); }
  std::shared_ptr<bound_exchange> bind(exchange_plan plan) override {
    if (plan.agrees()) return host_->bind(std::move(plan));
    auto keeper = keep_alive(plan);
    auto between_hosts = host_->bind(plan);
    return std::make_shared<staged_exchange>(std::move(plan), std::move(between_hosts), rank(), device_,
                                             std::move(keeper));
  }
  void synchronise() override { devices_.synchronizeStream(devices_.getStream(device_)); }

 private:
  c10::impl::VirtualGuardImpl devices_;
  c10::Device device_;
};

}  // namespace engine

/// Lets the workers of a launch have their tensors on devices of a kind, each on one, with their hosts between them:
/// `launch_options::over`.
inline engine::transport_layer through_host(c10::DeviceType kind, std::optional<int> device = {}) {
  return [=](engine::worker_program program) -> engine::worker_program {
    return [=, program = std::move(program)](const std::shared_ptr<engine::transport>& host) {
      const auto carrier = std::make_shared<engine::staged_transport>(host, kind, device);
      const c10::DeviceGuard here(carrier->device());
      program(carrier);
      carrier->synchronise();
    };
  };
}

}  // namespace tessera
