#pragma once
// The devices that a program finds, and LibTorch on them: those of the computer, or of the machine of none where it is
// linked with that.

#include <tessera/comm/launch/environment.hpp>
#include <tessera/tensor/device/torch_boxes.hpp>

#include <cuda_runtime_api.h>
#include <fmt/core.h>

#include <cstdlib>
#include <optional>
#include <string>

#ifdef TESTS_ON_NO_DEVICE
#include "tests/support/device/torch_device.hpp"
#else
#include <dlfcn.h>
#endif

namespace tessera::testing {

using namespace engine;

inline int devices_seen() {
  int n = 0;
  return cudaGetDeviceCount(&n) == cudaSuccess ? n : 0;
}

/// NCCL lets workers share a device that seem to be on several hosts: so do processes that are more than the devices of
/// their machine.
inline void share_devices(const launch_environment& launched) {
  if (launched.local_world > devices_seen()) setenv("NCCL_HOSTID", fmt::format("rank {}", launched.rank).c_str(), 1);
}

#ifdef TESTS_ON_NO_DEVICE

/// Devices of the machine of none while this lives: some for threads, and one that all processes share.
class devices_here {
 public:
  explicit devices_here(int for_threads = 4) : machine_(1, read_environment().by == launcher::none ? for_threads : 1) {}

  static std::optional<c10::DeviceType> torch_kind() { return torch_device(0).type(); }
  static std::string why_without_torch() { return {}; }
  /// Whether the host waits for the device in what LibTorch computes there, so that its worker goes on with no other
  /// call.
  static constexpr bool torch_waits = true;

  static constexpr bool are_none = true;
  /// Whether all that was taken of them is given back.
  bool have_all_back() const { return machine_.kept() == 0; }

 private:
  device_machine machine_;
};

#else

/// The devices that this process sees. What LibTorch computes with there is a library of its own, which finds those of
/// the toolkit or does not.
class devices_here {
 public:
  explicit devices_here(int /*for_threads*/ = 4) {
    if (devices_seen() > 0 && dlopen("libtorch_cuda.so", RTLD_NOW | RTLD_GLOBAL) == nullptr) why_ = dlerror();
  }

  std::optional<c10::DeviceType> torch_kind() const {
    return why_.empty() ? std::optional(c10::DeviceType::CUDA) : std::nullopt;
  }
  const std::string& why_without_torch() const { return why_; }
  static constexpr bool torch_waits = false;

  static constexpr bool are_none = false;
  static bool have_all_back() { return true; }

 private:
  std::string why_;
};

#endif

}  // namespace tessera::testing
