#pragma once

#include <tessera/comm/base/error.hpp>

#include <tessera/tensor/box/aten.hpp>

#include <string>

namespace tessera::nn::engine {

/// A gradient of a leaf that has no memory: who reads it, as a step or a norm does, gets this refusal.
inline at::Tensor refusing_gradient(const at::Tensor& leaf, const refusal& why, const std::string& name) {
  at::Tensor none = at::empty({0}, leaf.options().requires_grad(false));
  none.unsafeGetTensorImpl()->set_sizes_contiguous(leaf.sizes());
  none.storage().unsafeGetStorageImpl()->release_data_and_set_meta_custom_data_ptr_error_msg_(error(why, name).what());
  return none;
}

/// Throws what a gradient refuses its readers with.
inline void check_readable(const at::Tensor& gradient) {
  if (gradient.defined() && gradient.layout() == at::kStrided) static_cast<void>(gradient.const_data_ptr());
}

}  // namespace tessera::nn::engine
