#pragma once

#include <tessera/nn/layer/projection.hpp>

namespace tessera::nn {

namespace engine {

TESSERA_INLINE at::Tensor linear_of_each(const at::Tensor& x, const at::Tensor& weight,
                                         const std::optional<at::Tensor>& bias) {
  const at::Tensor slots = x.unsqueeze(1).flatten(1, -2);
  // no bias: nothing to add it to
  const at::Tensor y = bias && bias->numel() > 0 ? at::baddbmm(*bias, slots, weight) : at::bmm(slots, weight);
  std::vector<index_t> sizes = x.sizes().vec();
  sizes.back() = weight.size(2);
  return y.reshape(sizes);
}

}  // namespace engine

TESSERA_INLINE std::vector<at::Tensor> forward(const call& c, const engine::projection& layer) {
  const at::Tensor x = c.used();
  const at::ScalarType e = x.scalar_type();
  const at::ScalarType sums = at::isReducedFloatingType(e) ? at::kFloat : e;
  std::vector<at::Tensor> all;
  std::size_t next = 0;
  for (int i = 0; i < layer.parts.count; ++i) {
    std::vector<at::Tensor> operands{x, c.weight(next++, {e, sums})};
    const at::IntArrayRef outputs =
        operands[1].sizes().slice(layer.by_expert() ? 2 : 0, static_cast<std::size_t>(layer.parts[i].outputs.count));
    const at::Tensor w = operands[1];
    if (layer.bias) operands.push_back(c.weight(next++, {e, sums}));
    const std::optional<at::Tensor> bias = layer.bias ? std::optional(operands[2]) : std::nullopt;
    const at::Tensor y =
        layer.by_expert()
            ? engine::linear_of_each(x.to(sums), w.flatten(2), bias ? std::optional(bias->flatten(2)) : std::nullopt)
            : at::linear(x.to(sums), w.flatten(0, -2), bias ? std::optional(bias->flatten()) : std::nullopt);
    all.push_back(c.bound.depends_on_all(y.to(e).unflatten(-1, outputs), operands));
  }
  return all;
}

}  // namespace tessera::nn
