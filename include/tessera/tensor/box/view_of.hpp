#pragma once

#include <tessera/comm/box/region.hpp>
#include <tessera/tensor/box/element_type.hpp>

#include <tessera/tensor/box/aten.hpp>

namespace tessera::detail {

/// A box as LibTorch's tensor, where it lies; unsigned integers as signed ones.
inline at::Tensor view_of(const region& r, c10::Device device) {
  return at::from_blob(r.data, c10::IntArrayRef(r.extents.begin(), r.extents.end()),
                       c10::IntArrayRef(r.strides.begin(), r.strides.end()),
                       at::TensorOptions(signed_type(r.element)).device(device));
}

}  // namespace tessera::detail
