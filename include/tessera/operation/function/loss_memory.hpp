#pragma once

#include <tessera/operation/function/loss_layouts.hpp>
#include <tessera/operation/plan/layer_plan.hpp>

namespace tessera::functions::engine {

/// What a loss holds besides its operands and losses: boxes as the first operand, and numbers of each sample.
struct loss_memory {
  unsigned operands = 0;   ///< bit i: operand i is kept for backward
  index_t kept = 0;        ///< boxes that are made and kept for backward
  index_t remembered = 0;  ///< the same, gone at once where there is no backward
  index_t there = 0;       ///< boxes that are there at once forward
  index_t back = 0;        ///< the same backward, besides gradients
  index_t rows = 0;        ///< numbers of a sample that are there at once forward, in eight bytes

  constexpr loss_memory(unsigned saved, index_t makes, index_t remembers, index_t at_once, index_t at_once_back)
      : operands(saved), kept(makes), remembered(remembers), there(at_once), back(at_once_back) {}
};

/// A plan takes the memory of a loss of x.
constexpr void hold_loss(layer_plan& p, const loss_memory& m, const tensor_value& x) {
  const element e = detail::wide(x.element);
  p.saves = saved_tensors::saving(m.operands);
  p.make(x.layout, e, m.kept);
  p.remember(x.layout, e, m.remembered);
  p.take(x.layout, e, m.there);
  p.take_back(x.layout, e, m.back);
  if (m.rows == 0) return;
  const layout each = detail::per_sample(x.layout, {placement::invariant});
  p.take(each, element::float64, m.rows);
  p.take_back(each, element::float64, m.rows);
}

}  // namespace tessera::functions::engine
