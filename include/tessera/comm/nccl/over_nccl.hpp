#pragma once

#include <tessera/comm/nccl/nccl_exchange.hpp>
#include <tessera/comm/workers.hpp>

#include <memory>
#include <utility>

namespace tessera {

/// A program for the workers of a launch whose tensors lie on devices: `program(transport)` is given one over NCCL, on top of the launch's own, and
/// its thread has that worker's device as the current one.
///
/// run_workers(argc, argv, options, mesh, over_nccl(boxes, {}, program)); the launch is over MPI, or of threads with a device each.
inline worker_program over_nccl(std::shared_ptr<device_boxes> boxes, nccl_options options, worker_program program) {
  return [boxes = std::move(boxes), options = std::move(options), program = std::move(program)](const std::shared_ptr<transport>& host) {
    const auto carrier = std::make_shared<nccl_transport>(host, boxes, options);
    const current_device here(carrier->device());
    program(carrier);
    carrier->synchronise();
  };
}

}  // namespace tessera
