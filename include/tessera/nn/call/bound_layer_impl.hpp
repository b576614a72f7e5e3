#pragma once

#include <tessera/nn/call/bound_layer.hpp>

namespace tessera::nn::engine {

TESSERA_INLINE bound_layer::bound_layer(team_handle of, const layer_plan& plan, element first)
    : team(std::move(of)), outputs(held_by(plan.raw(), team->rank())), sizes(tessera::detail::sizes_of(outputs)) {
  for (int i = 0; i < plan.inputs(); ++i) inputs.push_back({team->intern(plan.given(i)), team->intern(plan.used(i))});
  for (int i = 0; i < plan.exchanges(); ++i)
    exchanges.push_back({team->intern(plan.from(i)), team->intern(plan.to(i))});
  for (int i = 0; i < plan.outputs(); ++i) {
    results.push_back({team->intern(plan.raw(i)), team->intern(plan.output(i))});
    gives.push_back(tessera::detail::scalar_type_of(plan.element_of(i, first)));
    travels.push_back(tessera::detail::scalar_type_of(plan.travels_in(i, first)));
  }
  for (int r = 0; r < team->carrier().size(); ++r) {
    const auto empty = [r](const layout& x) { return cutting{x}.elements_of(r) == 0; };
    bool none = empty(plan.raw());
    for (int i = 0; i < plan.inputs(); ++i) none = none || empty(plan.used(i));
    if (plan.parameters() > 0) none = none || empty(plan.weight(0));  // others are added to what it gives
    some_are_empty = some_are_empty || none;
    if (r == team->rank()) is_empty = none;
  }
}

TESSERA_INLINE const tessera::detail::window_reading& bound_layer::reads(int first,
                                                                         const static_vector<sliding, 8>& kernels,
                                                                         const at::Scalar& outside,
                                                                         builtin_padding by) const {
  using reading = tessera::detail::window_reading;
  return once<reading>([&] { return reading(inputs[0].to->layout(), *team, outputs, first, kernels, outside, by); });
}

TESSERA_INLINE const tessera::detail::window_giving& bound_layer::gives_by(
    int first, const static_vector<sliding, 8>& kernels) const {
  using giving = tessera::detail::window_giving;
  return once<giving>([&] { return giving(boxes().operands[0].held, boxes().result.held, first, kernels); });
}

TESSERA_INLINE const local_boxes& bound_layer::boxes() const {
  return once<local_boxes>([&] {
    local_boxes all;
    for (const redistribution& x : inputs) all.operands.push({x.to->layout(), team->rank()});
    all.result = {results[0].from->layout(), team->rank()};
    return all;
  });
}

TESSERA_INLINE const crew& bound_layer::workers() const {
  return *once<const crew*>(
      [&]() -> const crew* { return &team->crew_of((inputs.empty() ? results[0].from : inputs[0].to)->layout()); });
}

}  // namespace tessera::nn::engine
