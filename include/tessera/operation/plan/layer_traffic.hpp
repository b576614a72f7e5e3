#pragma once

#include <tessera/operation/plan/exchange_traffic.hpp>
#include <tessera/plan/reduced_change.hpp>

namespace tessera::detail {

/// A dynamic extent and its value: a binding whose name is a value.
struct bound_extent {
  text tag;
  index_t extent = 0;
};
using bound_extents = static_vector<bound_extent, max_dimensions>;

/// Gives the dynamic extents of a plan their values, where it is: compilers take long to copy one.
constexpr void bind_all(layer_plan& p, const bound_extents& known) {
  for (const bound_extent& k : known) p.each_layout([&](layout& x) { bind_extent(x, k.tag, k.extent); });
}

/// Whether binding names is all that other extents change of a plan: each has one, and no window nor list of lengths is
/// along it.
constexpr bool follows_names(const layer_plan& p) {
  bool all = true;
  p.each_layout([&](const layout& x) {
    for (const dimension& d : x.dims)
      all = all && (d.extent != dynamic ||
                    (d.kind == cover::tiled && d.bounds == nullptr && d.tag.size > 0 && !(d.tag == unnamed)));
  });
  return all;
}

/// The traffic of a layer with these extents.
constexpr traffic_value bound_traffic(layer_plan p, const operand_elements& e, const bound_extents& known) {
  bind_all(p, known);
  return traffic_of(p, e);
}

/// The traffic of a layer as the compiler counts it: the changes of its first operand and result, which other layers
/// share, and all others.
struct layer_exchanges {
  reduced_change before;
  reduced_change after;
  traffic_value others;
  element result{};  ///< in which the first travels
};

constexpr layer_exchanges exchanges_of(layer_plan p, const operand_elements& e, const bound_extents& known) {
  bind_all(p, known);
  layer_exchanges x;
  if (p.outputs() > 0) x.result = p.travels_in(0, e[0]);
  const auto count = [&](const layout& from, const layout& to, element of, reduced_change* into) {
    if (same(from, to)) return;
    if (into != nullptr) *into = engine::reduced(from, to);
    if (into == nullptr || into->times == 0) x.others += traffic_of(from, to, of);
  };
  for (int i = 0; i < p.inputs(); ++i) count(p.given(i), p.used(i), e[i], i == 0 ? &x.before : nullptr);
  for (int i = 0; i < p.outputs(); ++i)
    count(p.raw(i), p.output(i), p.travels_in(i, e[0]), i == 0 ? &x.after : nullptr);
  for (int i = 0; i < p.exchanges(); ++i) x.others += traffic_of_exchange(p, i);
  for (int i = 0; i < p.parameters(); ++i) x.others += traffic_of_parameter(p, i, e);
  return x;
}

/// The traffic of a reduced change and its adjoint: one constant for all layers that have it.
struct cost_both_ways {
  cost there;
  cost back;
};
template <layout From, layout To>
inline constexpr cost_both_ways reduced_cost{
    cost_between(From, To), only_sums(From) && only_sums(To) ? cost_between(cotangent(To), cotangent(From)) : cost{}};

constexpr traffic_value traffic_in_bytes(const cost_both_ways& c, index_t times, element e) {
  return {in_bytes(c.there * times, e), has_cotangent(e) ? in_bytes(c.back * times, e) : direction{}};
}

/// The traffic of a layer whose exchanges `X::of` are a constant, and whose first operand has this element.
template <class X, element Operand>
constexpr traffic_value counted_traffic() {
  traffic_value all = X::of.others;
  if constexpr (X::of.before.times > 0)
    all += traffic_in_bytes(reduced_cost<X::of.before.from, X::of.before.to>, X::of.before.times, Operand);
  if constexpr (X::of.after.times > 0)
    all += traffic_in_bytes(reduced_cost<X::of.after.from, X::of.after.to>, X::of.after.times, X::of.result);
  return all;
}

}  // namespace tessera::detail
