#pragma once

#include <tessera/nn/projection.hpp>

namespace tessera::nn {

TESSERA_INLINE std::vector<at::Tensor> forward(const call& c, const projection& what) {
  const at::Tensor x = c.used();
  const at::ScalarType e = x.scalar_type();
  const at::ScalarType sums = at::isReducedFloatingType(e) ? at::kFloat : e;
  std::vector<at::Tensor> all;
  std::size_t next = 0;
  for (int i = 0; i < what.parts.count; ++i) {
    std::vector<at::Tensor> operands{x, c.weight(next++).to(e)};
    const at::Tensor w = operands[1].flatten(0, -2).to(sums);
    if (what.bias) operands.push_back(c.weight(next++).to(e));
    const std::optional<at::Tensor> bias = what.bias ? std::optional(operands[2].flatten().to(sums)) : std::nullopt;
    const at::Tensor y = at::linear(x.to(sums), w, bias).to(e).unflatten(-1, operands[1].sizes().slice(0, static_cast<std::size_t>(operands[1].dim() - 1)));
    all.push_back(c.layer.tied(y, operands));
  }
  return all;
}

}  // namespace tessera::nn
