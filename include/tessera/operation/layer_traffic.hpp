#pragma once

#include <tessera/operation/layer_plan.hpp>
#include <tessera/plan/reduced_change.hpp>

#include <initializer_list>

namespace tessera::detail {

/// What types need of a layer's plan: its result, why it is refused, if it is, and whether anything is exchanged.
struct layer_result {
  tensor_value value;
  refusal why;
  bool moves = false;
};
constexpr layer_result result_of(const layer_plan& p, element e) {
  return {{p.output, e}, p.why, !p.parameters.empty() || !(p.used == p.input) || !(p.output == p.raw)};
}

/// A plan with the values of its dynamic extents.
template <class... Bindings>
constexpr layer_plan bound_all(layer_plan p, const Bindings&... bindings) {
  for (layout* x : {&p.input, &p.used, &p.raw, &p.output}) *x = bound_all(*x, bindings...);
  return p;
}

/// What a layer moves, as it is counted while compiling: changes of its input and of its result that other layers have too, and
/// all else.
struct layer_exchanges {
  reduced_change before;
  reduced_change after;
  traffic_value others;
};

constexpr layer_exchanges exchanges_of(const layer_plan& p, element e) {
  layer_exchanges x;
  const auto count = [&](const layout& from, const layout& to, reduced_change& into) {
    if (same(from, to)) return;
    into = reduced(from, to);
    if (into.times == 0) x.others += traffic_of(from, to, e);
  };
  count(p.input, p.used, x.before);
  count(p.raw, p.output, x.after);
  for (const parameter_value& w : p.parameters) x.others += traffic_of(w.stored, w.used, e);
  return x;
}

/// What a reduced change and its adjoint move: a constant that all layers share which have it.
struct cost_both_ways {
  cost there;
  cost back;
};
template <layout From, layout To>
inline constexpr cost_both_ways reduced_cost{cost_between(From, To), cost_between(cotangent(To), cotangent(From))};

/// The traffic of a layer whose exchanges `X::of` are a constant.
template <class X, element E>
constexpr traffic_value counted_traffic() {
  traffic_value all = X::of.others;
  const auto add = [&](const cost_both_ways& c, index_t times) {
    all.forward += in_bytes(c.there * times, E);
    if (has_cotangent(E)) all.backward += in_bytes(c.back * times, E);
  };
  if constexpr (X::of.before.times > 0) add(reduced_cost<X::of.before.from, X::of.before.to>, X::of.before.times);
  if constexpr (X::of.after.times > 0) add(reduced_cost<X::of.after.from, X::of.after.to>, X::of.after.times);
  return all;
}

}  // namespace tessera::detail
