#pragma once

#include <tessera/comm/base/error.hpp>

#include <cuda_runtime_api.h>
#include <nccl.h>

#include <cstddef>
#include <utility>

namespace tessera {
namespace detail {

/// Failures of CUDA or NCCL are reported in their own words.
inline void throw_if_failed(cudaError_t status, const char* action) {
  if (status != cudaSuccess)
    throw error(refusal{code::device_failed, status}, fmt::format("{}: {}", action, cudaGetErrorString(status)));
}
inline void throw_if_failed(ncclResult_t status, const char* action) {
  if (status != ncclSuccess && status != ncclInProgress)
    throw error(refusal{code::device_failed, status}, fmt::format("{}: {}", action, ncclGetErrorString(status)));
}

}  // namespace detail

namespace engine {

/// A device that is this thread's current one for as long as this lives.
class current_device {
 public:
  explicit current_device(int device) {
    detail::throw_if_failed(cudaGetDevice(&before_), "asking for the current device");
    if (before_ != device) detail::throw_if_failed(cudaSetDevice(device), "choosing a device");
  }
  current_device(const current_device&) = delete;
  current_device& operator=(const current_device&) = delete;
  ~current_device() { static_cast<void>(cudaSetDevice(before_)); }

 private:
  int before_ = 0;
};

/// A queue of a device's work, beside those of whoever computes there.
class device_stream {
 public:
  device_stream() {
    detail::throw_if_failed(cudaStreamCreateWithFlags(&handle_, cudaStreamNonBlocking), "making a stream");
  }
  device_stream(const device_stream&) = delete;
  device_stream& operator=(const device_stream&) = delete;
  ~device_stream() { static_cast<void>(cudaStreamDestroy(handle_)); }

  cudaStream_t get() const { return handle_; }

 private:
  cudaStream_t handle_ = nullptr;
};

/// A place in a stream, which another stream may wait for.
class device_event {
 public:
  device_event() {
    detail::throw_if_failed(cudaEventCreateWithFlags(&handle_, cudaEventDisableTiming), "making an event");
  }
  device_event(const device_event&) = delete;
  device_event& operator=(const device_event&) = delete;
  ~device_event() { static_cast<void>(cudaEventDestroy(handle_)); }

  /// It is behind all that the stream has to do now.
  void record(cudaStream_t on) { detail::throw_if_failed(cudaEventRecord(handle_, on), "recording an event"); }
  /// Later work of the stream comes behind it.
  void delay(cudaStream_t other) const {
    detail::throw_if_failed(cudaStreamWaitEvent(other, handle_, 0), "waiting for an event");
  }
  /// Whether the device came by.
  bool passed() const {
    const cudaError_t status = cudaEventQuery(handle_);
    if (status == cudaErrorNotReady) return false;
    detail::throw_if_failed(status, "the device's work");
    return true;
  }

 private:
  cudaEvent_t handle_ = nullptr;
};

/// Memory of a device between two places of a stream.
class device_memory {
 public:
  device_memory(index_t bytes, cudaStream_t on) : on_(on) {
    void* memory = nullptr;
    if (bytes > 0)
      detail::throw_if_failed(cudaMallocAsync(&memory, static_cast<std::size_t>(bytes), on), "memory of a device");
    data_ = static_cast<std::byte*>(memory);
  }
  device_memory(const device_memory&) = delete;
  device_memory& operator=(const device_memory&) = delete;
  ~device_memory() {
    if (data_ != nullptr) static_cast<void>(cudaFreeAsync(data_, on_));
  }

  std::byte* data() const { return data_; }

 private:
  cudaStream_t on_;
  std::byte* data_ = nullptr;
};

}  // namespace engine

}  // namespace tessera
