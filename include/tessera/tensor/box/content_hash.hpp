#pragma once

#include <tessera/comm/base/header_or_compiled.hpp>
#include <tessera/tensor/box/element_type.hpp>

#include <cstdint>

namespace tessera::detail {

/// A number for the elements of a tensor in the order of their indices, whatever its strides, to compare copies by.
std::uint64_t content_hash(const at::Tensor& x);

}  // namespace tessera::detail

#ifndef TESSERA_COMPILED
#include <tessera/tensor/box/content_hash_impl.hpp>
#endif
