#pragma once

#include <tessera/nn/layer/attention.hpp>
#include <tessera/tensor/autograd/recomposed.hpp>

#include <cmath>
#include <limits>

namespace tessera::detail {

/// softmax(q kᵀ / √d) v of heads [n, g, s, d] by functions that have derivatives of every order; half types are float
/// in it.
inline at::Tensor composed_attention(const std::vector<at::Tensor>& heads, bool causal) {
  return in_float(
      [causal](const at::Tensor& q, const at::Tensor& k, const at::Tensor& v) {
        at::Tensor scores = at::matmul(q, k.transpose(-2, -1)) / std::sqrt(static_cast<double>(q.size(-1)));
        if (causal)
          scores = scores.masked_fill(at::ones({q.size(-2), k.size(-2)}, q.options().dtype(at::kBool)).triu(1),
                                      -std::numeric_limits<double>::infinity());
        return at::matmul(at::softmax(scores, -1), v);
      },
      heads[0], heads[1], heads[2]);
}

}  // namespace tessera::detail

namespace tessera::nn {

TESSERA_INLINE at::Tensor forward(const call& c, const engine::attention_description& layer) {
  if (c.bound.is_empty) return tessera::detail::empty_result(c.bound.outputs, c.operands);
  const at::Tensor& q = c.operand(0);
  const index_t keys = q.size(-3);
  const index_t queries_of_one = q.size(-2);
  const auto by_head = [&](const at::Tensor& x) {  // [n…, s, g, d] → [n, g · r, s, d]
    const at::Tensor each = x.reshape({-1, x.size(-3), keys, 1, x.size(-1)}).expand({-1, -1, -1, queries_of_one, -1});
    return each.flatten(2, 3).transpose(1, 2);
  };
  const at::Tensor all_queries = q.reshape({-1, q.size(-4), keys * queries_of_one, q.size(-1)}).transpose(1, 2);
  const std::vector<at::Tensor> heads{all_queries, by_head(c.operand(1)), by_head(c.operand(2))};
  const at::Tensor y = tessera::detail::recomposed(
      at::scaled_dot_product_attention(heads[0], heads[1], heads[2], std::nullopt, 0, layer.causal), heads,
      [causal = layer.causal](const std::vector<at::Tensor>& x) {
        return tessera::detail::composed_attention(x, causal);
      });
  return c.bound.depends_on_all(y.transpose(1, 2).reshape(c.bound.sizes), c.operands);
}

}  // namespace tessera::nn
