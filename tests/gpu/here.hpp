#pragma once
// The devices that a test finds, and LibTorch on them: those of the computer, or of the machine of none where a program is linked with that.

#include <tessera/tensor/torch_boxes.hpp>

#include <cuda_runtime_api.h>

#include <dlfcn.h>

#ifdef TESTS_ON_NO_DEVICE
#include "tests/support/device/torch_device.hpp"
#endif

#include <cstdio>
#include <optional>

namespace tessera::testing {

/// What there is while it lives.
class devices_here {
 public:
  int count() const {
    int n = 0;
    return cudaGetDeviceCount(&n) == cudaSuccess ? n : 0;
  }

#ifdef TESTS_ON_NO_DEVICE
  std::optional<c10::DeviceType> torch_kind() const { return torch_device(0).type(); }
  /// Whether the host waits for the device in what LibTorch computes there, so that its worker goes on with no other call.
  static constexpr bool torch_waits = true;

  /// Whether all that was taken of them is given back.
  bool have_all_back() const { return machine_.kept() == 0; }

 private:
  device_machine machine_;
#else
  /// What LibTorch computes with on GPUs is a library of its own, which finds those of the toolkit or does not.
  std::optional<c10::DeviceType> torch_kind() const {
    if (dlopen("libtorch_cuda.so", RTLD_NOW | RTLD_GLOBAL) != nullptr) return c10::DeviceType::CUDA;
    std::printf("LibTorch's boxes are not tried: %s\n", dlerror());
    return std::nullopt;
  }

  static constexpr bool torch_waits = false;

  bool have_all_back() const { return true; }
#endif
};

}  // namespace tessera::testing
