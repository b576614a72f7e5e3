#pragma once
// Boxes without kernels, for what is to be tried on a device with nothing but CUDA's runtime.

#include <tessera/comm/box/combine_rows.hpp>
#include <tessera/comm/device/device_boxes.hpp>
#include <tessera/comm/nccl/device.hpp>

#include <deque>
#include <span>
#include <vector>

namespace tessera::testing {

using namespace engine;

/// Memory of the host that its device reads and writes, handed out once: to take or give back such memory may wait for
/// the device.
class pinned_memory {
 public:
  explicit pinned_memory(index_t bytes) : left_(bytes) {
    void* memory = nullptr;
    detail::throw_if_failed(cudaMallocHost(&memory, static_cast<std::size_t>(bytes)), "memory of the host");
    all_ = next_ = static_cast<std::byte*>(memory);
  }
  pinned_memory(const pinned_memory&) = delete;
  pinned_memory& operator=(const pinned_memory&) = delete;
  ~pinned_memory() { static_cast<void>(cudaFreeHost(all_)); }

  std::byte* take(index_t bytes) {
    bytes = (bytes + 15) / 16 * 16;
    if (bytes > left_) throw error(refusal{code::device_failed, 0}, "memory of the host: all is taken");
    left_ -= bytes;
    return std::exchange(next_, next_ + bytes);
  }

 private:
  std::byte* all_ = nullptr;
  std::byte* next_ = nullptr;
  index_t left_;
};

/// Copies are the device's, a row at a time; terms are combined by the host, in the order of the stream. Of one worker,
/// for as long as a test.
class bare_boxes final : public device_boxes {
 public:
  int kind() const override { return 1; }
  cudaStream_t current() const override { return nullptr; }

  void copy(const region& from, const region& to, cudaStream_t on) override {
    copy_by(cudaMemcpyDeviceToDevice, from, to, on);
  }

  void combine_terms(std::span<const region> terms, const region& to, combine with, cudaStream_t on) override {
    call& c = calls_.emplace_back();
    c.with = with;
    for (const region& t : terms) {
      c.boxes.push_back(t.packed_at(host_.take(t.bytes())));
      copy_by(cudaMemcpyDeviceToHost, t, c.boxes.back(), on);
    }
    const region sum = to.packed_at(host_.take(to.bytes()));
    c.boxes.push_back(sum);
    detail::throw_if_failed(
        cudaLaunchHostFunc(on, [](void* of) { static_cast<const call*>(of)->run(); }, &c), "combining terms");
    copy_by(cudaMemcpyHostToDevice, sum, to, on);
  }

  void fill_neutral(const region& to, combine with, cudaStream_t on) override {
    const region from = to.packed_at(host_.take(to.bytes()));
    tessera::engine::fill_neutral(from, with);
    copy_by(cudaMemcpyHostToDevice, from, to, on);
  }

 private:
  /// Terms and what they come to, on the host.
  struct call {
    std::vector<region> boxes;
    combine with = combine::sum;

    void run() const {
      std::vector<const index_t*> strides;
      std::vector<std::byte*> at;
      for (const region& r : boxes) {
        strides.push_back(r.strides.begin());
        at.push_back(r.data);
      }
      combine_rows(common_rows(boxes.back().extents, strides), boxes.back().element, at, with);
    }
  };

  static void copy_by(cudaMemcpyKind how, const region& from, const region& to, cudaStream_t on) {
    const common_rows rows(from.extents, {from.strides.begin(), to.strides.begin()});
    const index_t size = bytes_of(from.element);
    const auto pitch = [&](std::size_t of) { return static_cast<std::size_t>(rows.step(of) * size); };
    const auto n = static_cast<std::size_t>(rows.length());
    std::byte* at[]{from.data, to.data};
    rows.each(at, size, [&] {
      if (n > 0)
        detail::throw_if_failed(
            cudaMemcpy2DAsync(at[1], pitch(1), at[0], pitch(0), static_cast<std::size_t>(size), n, how, on), "copying");
    });
  }

  pinned_memory host_{index_t{128} << 20};
  std::deque<call> calls_;  // whose addresses the device has
};

}  // namespace tessera::testing
