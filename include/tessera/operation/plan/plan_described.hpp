#pragma once

#include <tessera/meta/indices.hpp>
#include <tessera/operation/plan/layer_plan.hpp>

#include <span>
#include <type_traits>
#include <utility>

namespace tessera {

namespace nn {

template <class Self>
struct described_layer;

}  // namespace nn

namespace engine {

/// Whether a layer's description says it whole.
template <class L>
concept Described = std::is_base_of_v<nn::described_layer<L>, L>;

/// The description of a layer.
template <Described L>
inline constexpr auto description_of = L::what();
template <Described L>
using description_type = std::remove_const_t<decltype(description_of<L>)>;

/// What a layer plans for operands that only run time has, by its description. The compiled library holds it for each
/// description of TESSERA_DESCRIPTIONS (operation/network/descriptions.hpp).
template <class Description>
layer_plan plan_described(const void* description, std::span<const tensor_value* const> x) {
  const Description& what = *static_cast<const Description*>(description);
  if constexpr (requires { plan_of(what, *x[0]); }) return plan_of(what, *x[0]);
  else return plan_of(what, *x[0], *x[1], *x[2]);
}

}  // namespace engine

namespace detail {

template <class Layer, class... X>
concept DescriptionTakes = requires(const Layer& layer, const X&... x) { plan_of(layer.what(), x...); };
template <class Layer, class... X>
concept PlansItself = requires(const Layer& layer, const X&... x) { layer.plan(x...); };

template <class Layer, int... Place>
constexpr bool description_takes(indices<Place...>) {
  return DescriptionTakes<Layer, decltype((static_cast<void>(Place), std::declval<tensor_value>()))...>;
}
template <class Layer, int... Place>
constexpr bool plans_itself(indices<Place...>) {
  return PlansItself<Layer, decltype((static_cast<void>(Place), std::declval<tensor_value>()))...>;
}

/// Whether a layer, a value or a type, takes so many operands: by its description, or by a plan of its own.
template <class Layer, int Count>
concept PlansByDescription = description_takes<Layer>(indices_below<Count>{}) &&
                             (Described<Layer> || !plans_itself<Layer>(indices_below<Count>{}));
template <class Layer, int Count>
concept PlansOperands = PlansByDescription<Layer, Count> || plans_itself<Layer>(indices_below<Count>{});

}  // namespace detail
}  // namespace tessera
