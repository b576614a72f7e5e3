#pragma once

#include <tessera/comm/nccl/exchange.hpp>
#include <tessera/comm/workers.hpp>

#include <memory>
#include <utility>

namespace tessera {

/// Lets the workers of a launch have their tensors on devices, each on one, that NCCL connects: `launch_options::over`.
/// The device is its worker's current one while the program runs; the launch is of processes or of threads.
inline engine::transport_layer over_nccl(std::shared_ptr<engine::device_boxes> boxes, nccl_options options = {}) {
  return [boxes = std::move(boxes),
          options = std::move(options)](engine::worker_program program) -> engine::worker_program {
    return [=, program = std::move(program)](const std::shared_ptr<engine::transport>& host) {
      const auto carrier = std::make_shared<engine::nccl_transport>(host, boxes, options);
      const engine::current_device here(carrier->device());
      program(carrier);
      carrier->synchronise();
      carrier->close();
    };
  };
}

}  // namespace tessera
