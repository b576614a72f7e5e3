#pragma once

#include <tessera/operation/function/losses.hpp>
#include <tessera/operation/routing/routed_layouts.hpp>

namespace tessera {

namespace functions {

namespace engine {

/// A number of all workers from the scores of their rows [row…, experts].
struct loss_of_rows : function {
  static constexpr function_value checked(const tensor_value& scores) {
    const layout& l = scores.layout;
    const int last = l.dims.count - 1;
    refusal why = check_takes(takes::reals, scores.element);
    if (last < 1) why = first_of(why, refusal{code::layer_takes_other_dimensions, 2, last + 1});
    if (why.ok())
      why = first_of(tessera::detail::check_rows(l, 0), detail::check_sums(reduced<>(l, linearity::multilinear), l));
    if (why.ok() && l.part_count(last) > 1) why = refusal{code::dimension_needed_whole, 0, last};
    return {{one_number(l), scores.element}, why};
  }
  static constexpr exchange_values summed(const layout& rows, index_t count) {
    exchange_values all = no_items<exchange_value, 4>;
    all.push(detail::summing(rows, count));
    return all;
  }
};

}  // namespace engine

/// E · Σ f p over experts, of all workers' rows: f the share of the choices, p the mean of the probabilities.
struct load_balance_loss : engine::loss_of_rows {
  static constexpr const char* name = "load_balance_loss";
  engine::number n;  ///< an integer that is not 0: probabilities are sigmoids over their sum, else softmax

  constexpr engine::function_value on(const tensor_value& scores, const tensor_value& chosen) const {
    const engine::function_value y = checked(scores);
    if (!y.why.ok()) return y;
    const layout given = engine::over(chosen.layout, scores.layout.mesh);
    const int last = scores.layout.dims.count - 1;
    refusal why;
    if (chosen.element != element::int64) why = refusal{code::wrong_element, element::int64, chosen.element};
    if (!engine::meet(scores.layout.mesh, chosen.layout.mesh))
      why = engine::first_of(why, refusal{code::meshes_differ, 1});
    if (why.ok()) why = tessera::detail::check_rows_alike(engine::over(scores.layout, scores.layout.mesh), given, 1);
    if (why.ok() && given.dims[last].extent != scores.layout.dims[last].extent)
      why = refusal{code::extents_differ, last, scores.layout.dims[last].extent, given.dims[last].extent};
    if (why.ok() && given.dims[last].extent == dynamic) why = refusal{code::extent_not_static, last};
    return {y.result, why};
  }
  /// The probabilities, and the choices in double.
  constexpr void hold(layer_plan& p, const tensor_value& scores, const tensor_value&) const {
    const bool sigmoids = n.whole != 0, widens = scores.element != element::float64;
    const element e = detail::wide(scores.element);
    p.saves = engine::saved_tensors::saving(0);
    p.make(scores.layout, e);
    p.remember(scores.layout, e, sigmoids);
    p.take(scores.layout, element::float64);
    p.take(scores.layout, element::boolean);
    p.take_back(scores.layout, e, (sigmoids ? 3 : 1) + widens);
  }
  /// The choices and the probabilities of each expert.
  constexpr engine::exchange_values exchanges(const tensor_value& scores, const tensor_value&) const {
    const layout& l = scores.layout;
    return summed(l, 2 * l.dims[l.dims.count - 1].extent);
  }
};

/// The mean of (log Σ exp)² over all workers' rows (Zoph et al. 2022).
struct router_z_loss : engine::loss_of_rows {
  static constexpr const char* name = "router_z_loss";

  constexpr engine::function_value on(const tensor_value& scores) const { return checked(scores); }
  /// The powers of scores.
  constexpr void hold(layer_plan& p, const tensor_value& scores) const {
    p.saves = engine::saved_tensors::saving(1);
    p.take(scores.layout, detail::wide(scores.element));
    p.take_back(scores.layout, detail::wide(scores.element), 2);
  }
  constexpr engine::exchange_values exchanges(const tensor_value& scores) const { return summed(scores.layout, 1); }
};

}  // namespace functions

namespace losses {

/// E · Σ f p over the experts, f the share of the choices and p the mean probability of all workers' rows: 1 where all
/// are even, the same on any mesh (Fedus et al. 2021). `chosen` is what `nn::route` says of the scores [row…, E]. Its
/// gradient is that of p. Probabilities are the softmax of a row, or sigmoids over their sum.
template <engine::AnyTensor X, engine::AnyTensor C>
constexpr auto load_balance_loss(const X& scores, const C& chosen, bool of_sigmoids = false) {
  functions::load_balance_loss f;
  f.n = of_sigmoids ? 1 : 0;
  return call(f, scores, chosen);
}

/// The mean of (log Σ exp)² over all workers' rows of scores [row…, E], which keeps them small (Zoph et al. 2022).
template <engine::AnyTensor X>
constexpr auto router_z_loss(const X& scores) {
  return call(functions::router_z_loss(), scores);
}

}  // namespace losses

}  // namespace tessera
