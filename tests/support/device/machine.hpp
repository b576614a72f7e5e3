#pragma once
// A machine of devices that are none: streams run on a thread of their own, late and one before the other at will.
// Memory is the host's under addresses at which the host finds nothing, so that what reads a device's memory itself
// ends there.

#include <tessera/comm/device/device_boxes.hpp>

#include <cuda_runtime_api.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace tessera::testing {

using namespace engine;

/// Of the machine: one for each worker of the largest tests.
inline constexpr int most_devices = 64;

/// What a worker asked NCCL for, by its place in the communicator.
struct nccl_record {
  std::string call;  ///< "ncclSend"
  int place = 0;
  int peer = -1;
  std::size_t bytes = 0;
};

/// While it lives, the symbols of CUDA and NCCL have a machine behind them.
class device_machine {
 public:
  explicit device_machine(std::uint64_t seed = 1, int devices = most_devices);
  device_machine(const device_machine&) = delete;
  device_machine& operator=(const device_machine&) = delete;
  ~device_machine();

  /// The so-maniest call of a function from now on fails.
  void fail(const std::string& function, int which = 1);
  /// What was asked since the last time.
  std::vector<nccl_record> records();
  /// What is not given back: memory, streams, events and communicators.
  int kept() const;
};

/// Where the host has what a device has at an address; the address itself of memory that is the host's.
template <class T>
T* behind(T* address) {
  return reinterpret_cast<T*>(reinterpret_cast<std::uintptr_t>(address) & ~(std::uintptr_t{1} << 62));
}
inline region behind(region r) {
  r.data = behind(r.data);
  return r;
}

/// What a kernel does, when the stream comes to it.
void on_stream(cudaStream_t on, std::function<void()> run);

/// Does what a device does with boxes, on a stream of the machine.
class late_boxes final : public device_boxes {
 public:
  /// Of tensors on LibTorch's PrivateUse1 (torch_device.hpp), or of those that LibTorch has in the host's memory.
  explicit late_boxes(bool on_host = false) : on_host_(on_host) {}
  int kind() const override { return on_host_ ? 0 : 20; }
  cudaStream_t current() const override { return nullptr; }
  void copy(const region& from, const region& to, cudaStream_t on) override;
  void combine_terms(std::span<const region> terms, const region& to, combine with, cudaStream_t on) override;
  void fill_neutral(const region& to, combine with, cudaStream_t on) override;

 private:
  bool on_host_;
};

}  // namespace tessera::testing
