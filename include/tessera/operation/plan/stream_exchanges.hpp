#pragma once

#include <tessera/operation/plan/function.hpp>

#include <concepts>

namespace tessera::engine {

/// What a streamed operation moves: all parts of what it brings, or its terms to the owners of the result.
constexpr exchange_values stream_exchanges(const signature& op, const tensor_value* x, int count) {
  exchange_values all;
  static_vector<operand, 4> operands = no_items<operand, 4>;
  for (int o = 0; o < count; ++o) operands.push({x[o].layout, !has_cotangent(x[o].element)});
  const index_t asked = op.of(op.streams()).extent;
  for (int o = 0; o < operands.count; ++o)
    if (const int d = brought_dimension(op, o, operands[o].layout); d >= 0)
      all.push({operands[o].layout, brought(operands[o].layout, d), x[o].element, {d, asked, false}});
  if (all.count > 0) return all;
  const layout terms = infer(not_streamed(op), operands).layout;
  const layout sums = infer(op, operands).layout;
  if (!same(terms, sums)) all.push({terms, sums, x[0].element, {index_of(op.result, op.streams()), asked, true}});
  return all;
}

template <std::same_as<tensor_value>... Values>
constexpr exchange_values stream_exchanges(const signature& op, const Values&... x) {
  const tensor_value all[]{x...};
  return stream_exchanges(op, all, sizeof...(x));
}

}  // namespace tessera::engine
