#pragma once

#include <tessera/operation/function/loss.hpp>
#include <tessera/operation/function/loss_layouts.hpp>

namespace tessera {

namespace functions {

namespace engine {

/// A loss and its reduction. One exchange, in double, sums to an invariant, so backward moves nothing for it. It sums
/// the losses, a mean's divisor where only elements say it, and the count of invalid targets. Half types are float
/// before, and the result alone is rounded.
template <class Of>
struct reduced_loss : Of {
  using held = reduced_loss;  ///< what a program that is put together while it runs holds: one for all reductions
  nn::reduction how = nn::reduction::mean;
  call_site at;

  constexpr int rows() const {
    return (how != nn::reduction::none) + (how == nn::reduction::mean && Of::divides) + Of::judges;
  }

  template <class... Values>
  constexpr function_value on(const Values&... x) const {
    if (!Of::holds(Of::n)) return {{}, refusal{code::loss_option_out_of_range}};
    const function_value each = Of::each(x...);
    if (!each.why.ok() || how == nn::reduction::none) return each;
    const layout& l = each.result.layout;
    return {{one_number(l), each.result.element}, detail::check_sums(reduced<>(l, linearity::multilinear), l)};
  }
  template <class... Values>
  constexpr exchange_values exchanges(const Values&... x) const {
    exchange_values all = no_items<exchange_value, 4>;
    if constexpr (requires { Of::parts(all, x...); }) Of::parts(all, x...);
    if (rows() > 0) all.push(detail::summing(Of::each(x...).result.layout, rows()));
    return all;
  }
  /// What each loss has, and the losses of elements: these, weighted ones beside them, and what is summed, in double.
  template <class... Rest>
  constexpr void hold(layer_plan& p, const tensor_value& x, const Rest&... rest) const {
    if constexpr (Of::of_samples) {
      hold_loss(p, Of::takes(Of::n, x, rest...), x);
    } else {
      loss_memory m = Of::takes(Of::n);
      const element e = detail::wide(x.element);
      const bool reduces = how != nn::reduction::none, widens = reduces && e != element::float64;
      const bool weighs = sizeof...(rest) > 1;
      m.operands |= weighs ? 0xc : 0;
      m.there = reduces + tessera::detail::larger(tessera::detail::larger(m.there, weighs), widens ? 2 : 0);
      m.back += weighs || widens;
      hold_loss(p, m, x);
      if (Of::judges) p.take(x.layout, element::boolean, reduces ? 1 : 5);
    }
  }
};

/// The same with a reduction that types know.
template <class Of, nn::reduction By>
struct loss : reduced_loss<Of> {
  constexpr loss() { this->how = By; }
};

}  // namespace engine

}  // namespace functions

}  // namespace tessera
