#pragma once

#include <tessera/nn/attention.hpp>

namespace tessera::nn {

TESSERA_INLINE at::Tensor forward(const call& c, const attending& what) {
  if (c.layer.is_empty) return tessera::detail::empty_result(c.layer.outputs, c.operands);
  const at::Tensor& q = c.operand(0);
  const index_t keys = q.size(-3);
  const index_t queries_of_one = q.size(-2);
  const auto by_head = [&](const at::Tensor& x) {  // [n…, s, g, d] → [n, g · r, s, d]
    const at::Tensor each = x.reshape({-1, x.size(-3), keys, 1, x.size(-1)}).expand({-1, -1, -1, queries_of_one, -1});
    return each.flatten(2, 3).transpose(1, 2);
  };
  const at::Tensor all_queries = q.reshape({-1, q.size(-4), keys * queries_of_one, q.size(-1)}).transpose(1, 2);
  const at::Tensor y = at::scaled_dot_product_attention(all_queries, by_head(c.operand(1)), by_head(c.operand(2)), std::nullopt, 0, what.causal);
  return c.layer.tied(y.transpose(1, 2).reshape(c.layer.sizes), c.operands);
}

}  // namespace tessera::nn
