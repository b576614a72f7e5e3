#pragma once

#include <tessera/tensor/box/element_type.hpp>

#include <ATen/EmptyTensor.h>
#include <ATen/ops/as_strided_native.h>

#include <algorithm>
#include <vector>

namespace tessera {
namespace detail {

/// Room for a box; the host's is taken past LibTorch's dispatcher.
inline at::Tensor empty_box(at::IntArrayRef sizes, const at::TensorOptions& options) {
  if (options.device().is_cpu())
    return at::detail::empty_cpu(sizes, c10::typeMetaToScalarType(options.dtype()), false, std::nullopt);
  return at::empty(sizes, options);
}

/// n elements of a dimension from one on: the tensor itself where these are all of them. Where no gradient is recorded
/// the view is made past LibTorch's dispatcher, which takes most of a microsecond.
inline at::Tensor narrowed(const at::Tensor& x, index_t d, index_t begin, index_t n) {
  if (n == x.size(d)) return x;
  if (x.requires_grad() || !x.has_storage()) return x.narrow(d, begin, n);
  c10::DimVector sizes(x.sizes());
  sizes[static_cast<std::size_t>(d)] = n;
  return at::native::as_strided_tensorimpl(x, sizes, x.strides(), x.storage_offset() + begin * x.stride(d));
}

}  // namespace detail

namespace engine {

/// The surroundings of a box that a local operation reads: so many elements before and behind it in each dimension, of
/// one value.
struct padded_box {
  box_vector before;
  box_vector behind;
  at::Scalar value = 0;

  bool empty() const {
    const auto none = [](const box_vector& v) {
      return std::all_of(v.begin(), v.end(), [](index_t n) { return n == 0; });
    };
    return none(before) && none(behind);
  }
  /// The box inside.
  at::Tensor inside(at::Tensor x) const {
    for (int d = 0; d < before.count; ++d) x = detail::narrowed(x, d, before[d], x.size(d) - before[d] - behind[d]);
    return x;
  }
  /// The box with what lies around it.
  at::Tensor around(const at::Tensor& x) const {
    std::vector<index_t> widths;  // LibTorch wants the last dimension first
    for (int d = before.count - 1; d >= 0; --d) widths.insert(widths.end(), {before[d], behind[d]});
    return at::constant_pad_nd(x, widths, value);
  }
  /// Room for a box, its surroundings filled.
  at::Tensor room(const box_vector& held, const at::TensorOptions& options) const {
    box_vector sizes = held;
    for (int d = 0; d < before.count; ++d) sizes[d] += before[d] + behind[d];
    at::Tensor x = detail::empty_box(at::IntArrayRef(sizes.begin(), sizes.end()), options);
    if (x.numel() <= small) return x.fill_(value);  // at once: each side takes LibTorch a microsecond
    at::Tensor rest = x;
    for (int d = 0; d < before.count; ++d) {
      if (before[d] > 0) detail::narrowed(rest, d, 0, before[d]).fill_(value);
      if (behind[d] > 0) detail::narrowed(rest, d, before[d] + held[d], behind[d]).fill_(value);
      rest = detail::narrowed(rest, d, before[d], held[d]);
    }
    return x;
  }

 private:
  static constexpr index_t small = 4096;
};

}  // namespace engine

}  // namespace tessera
