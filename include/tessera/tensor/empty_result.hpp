#pragma once

#include <tessera/tensor/change.hpp>

namespace tessera::detail {

/// Zeros of a box that hang on their operands: a worker without elements skips the local operation, never the backward. Their
/// element is the first operand's.
inline at::Tensor empty_result(const holding& raw, const at::TensorList& operands) {
  at::Tensor none = at::zeros({}, operands[0].options());
  for (const at::Tensor& x : operands)
    if (x.requires_grad()) none = none + x.unsqueeze(0).narrow(0, 0, 0).sum();  // of no element, so 0 whatever x holds
  return none.to(operands[0].scalar_type()).expand(sizes_of(raw)).clone();
}

}  // namespace tessera::detail
