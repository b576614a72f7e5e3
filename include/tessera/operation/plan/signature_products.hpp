#pragma once

#include <tessera/operation/plan/layer_plan.hpp>

namespace tessera {

namespace detail {

// Whether the result has another number of elements than the operand along a dimension of both.
constexpr bool resizes(engine::treatment how) {
  using engine::treatment;
  return how == treatment::windowed || how == treatment::resampled || how == treatment::narrowed ||
         how == treatment::scaled;
}

// The letters of an operand that no operand before it has.
constexpr bool is_first(const signature& op, int o, int d) {
  for (int before = 0; before < o; ++before)
    if (engine::index_of(op.operands[before], op.operands[o][d]) >= 0) return false;
  return true;
}

// Whether a letter of operands [0, last] is in what comes behind them, or in the result.
constexpr bool wanted_behind(const signature& op, int last, char letter) {
  bool found = engine::index_of(op.result, letter) >= 0;
  for (int o = last + 1; o < op.operands.count; ++o) found = found || engine::index_of(op.operands[o], letter) >= 0;
  return found;
}

}  // namespace detail

namespace engine {

/// Whether an operation is a contraction: multilinear, with a letter that the result lacks, or said to be one.
constexpr bool contracts(const signature& op) {
  if (op.products) return true;
  if (op.kind != linearity::multilinear || op.operands.count < 2) return false;
  for (const letters& l : op.operands)
    for (char letter : l)
      if (!detail::wanted_behind(op, op.operands.count - 1, letter) &&
          (op.of(letter).how == treatment::plain || op.of(letter).how == treatment::whole ||
           op.of(letter).how == treatment::streamed))
        return true;
  return false;
}

/// Adds the multiply-adds of a contraction whose operands are those of the plan, then its parameters. Operands are
/// multiplied one after another, as LibTorch's einsum does. A product has all letters of both; a letter is gone before
/// it where nothing behind wants it.
constexpr void count_products(layer_plan& p, const signature& op) {
  if (!p.why.ok() || !contracts(op)) return;
  static_vector<held_extents, 4> lies;
  int brought = 0;
  for (int o = 0; o < op.operands.count; ++o) {
    if (o >= p.inputs()) lies.push(p.weight_extents(o - p.inputs()));
    else lies.push(brought_dimension(op, o, p.used(o)) < 0 ? p.used_extents(o) : p.brought_extents(brought++));
  }
  for (int last = op.operands.count > 1 ? 1 : 0; last < op.operands.count; ++last) {
    counted_product& by = p.add_product({});
    held_extents result = p.raw_extents();
    result.dims = 0;
    for (int o = 0; o <= last; ++o) {
      held_extents own = lies[o];
      own.dims = 0;
      for (int d = 0; d < op.operands[o].count; ++d) {
        const char letter = op.operands[o][d];
        if (!detail::is_first(op, o, d)) continue;
        if (o < last && index_of(op.operands[last], letter) < 0 && !detail::wanted_behind(op, last - 1, letter))
          continue;
        const int there = index_of(op.result, letter);
        if (there >= 0 && detail::resizes(op.of(letter).how)) result.dims |= 1u << there;
        else own.dims |= 1u << d;
      }
      if (own.dims != 0) by.of[by.count++] = own;
    }
    if (result.dims != 0) by.of[by.count++] = result;
  }
}

}  // namespace engine

}  // namespace tessera
