#pragma once

#include <tessera/tensor/autograd/empty_result.hpp>

namespace tessera::detail {

TESSERA_INLINE at::Tensor empty_result(const holding& raw, const at::TensorList& operands, at::ScalarType of) {
  at::Tensor none = at::zeros({}, operands[0].options());
  for (const at::Tensor& x : operands)
    if (x.requires_grad()) none = none + x.unsqueeze(0).narrow(0, 0, 0).sum();  // of no element, so 0 whatever x holds
  return none.to(of).expand(sizes_of(raw)).clone();
}

TESSERA_INLINE at::Tensor empty_result(const holding& raw, const at::TensorList& operands) {
  return empty_result(raw, operands, operands[0].scalar_type());
}

}  // namespace tessera::detail
