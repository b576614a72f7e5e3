#pragma once

#include <tessera/comm/box/region.hpp>

#include <span>

struct CUstream_st;  // CUDA's own name of what a cudaStream_t points to

namespace tessera::engine {

/// The kernels for boxes in a device's memory, each in its turn on a stream; this floor declares them, `torch_boxes`
/// has them.
class device_boxes {
 public:
  virtual ~device_boxes() = default;

  /// The kind of device, as LibTorch numbers it.
  virtual int kind() const = 0;
  /// The stream on which this thread's tensors of its current device are made and read.
  virtual CUstream_st* current() const = 0;

  /// to = from; equal extents, any strides.
  virtual void copy(const region& from, const region& to, CUstream_st* on) = 0;
  /// to = the terms, combined in their order as the host does: three and more in `sums_in` their element, rounded once.
  virtual void combine_terms(std::span<const region> terms, const region& to, combine with, CUstream_st* on) = 0;
  /// to = what changes nothing when it is combined.
  virtual void fill_neutral(const region& to, combine with, CUstream_st* on) = 0;
};

}  // namespace tessera::engine
