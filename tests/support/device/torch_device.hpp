#pragma once
// LibTorch on the machine of no devices: its kind of device that is left to others, whose tensors lie in the machine's
// memory. They mix with the host's as little as CUDA's do, so what forgets a device throws.

#include "machine.hpp"

#include <c10/core/Device.h>

namespace tessera::testing {

/// One of the machine's devices; its tensors are gone before the machine is.
inline c10::Device torch_device(int index) {
  return {c10::DeviceType::PrivateUse1, static_cast<c10::DeviceIndex>(index)};
}

}  // namespace tessera::testing
