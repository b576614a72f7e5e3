#pragma once

#include <tessera/tensor/change/change.hpp>

namespace tessera::detail {

/// Zeros of a box that hang on their operands: a worker without elements skips the local operation, never the backward.
at::Tensor empty_result(const holding& raw, const at::TensorList& operands, at::ScalarType of);
/// The same of the first operand's element.
at::Tensor empty_result(const holding& raw, const at::TensorList& operands);

}  // namespace tessera::detail

#ifndef TESSERA_COMPILED
#include <tessera/tensor/autograd/empty_result_impl.hpp>
#endif
