#pragma once

#include <c10/core/impl/COW.h>
#include <tessera/tensor/box/aten.hpp>

namespace tessera::detail {

/// y as a tensor with memory of its own, where it lies in that of x. They share it until one of them is written (copy
/// on write).
///
/// So the result of a verb may be written without a change to any other tensor, whether workers exchanged it or one
/// kept its own. Memory that no allocator of LibTorch's gave, such as a caller's array, cannot be shared so; it is
/// copied.
inline at::Tensor in_own_memory(const at::Tensor& y, const at::Tensor& x) {
  if (!y.is_alias_of(x)) return y;
  const bool shares = c10::impl::cow::has_simple_data_ptr(*y.storage().unsafeGetStorageImpl()) ||
                      c10::impl::cow::is_cow_data_ptr(y.storage().data_ptr());
  if (!shares) return y.clone();
  if (!y.is_complex() || !y.requires_grad()) return at::_lazy_clone(y);
  // LibTorch has a gradient of real ones alone
  return at::view_as_complex(at::_lazy_clone(at::view_as_real(y.resolve_conj())));
}

}  // namespace tessera::detail
