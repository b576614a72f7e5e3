#pragma once

#include <tessera/operation/plan/layer_plan.hpp>

#include <span>
#include <type_traits>

namespace tessera {

namespace nn {

namespace engine {

template <class Self>
struct described_layer;

}  // namespace engine

}  // namespace nn

namespace engine {

/// Whether a layer's description says it whole.
template <class L>
concept Described = std::is_base_of_v<nn::engine::described_layer<L>, L>;

/// The description of a layer.
template <Described L>
inline constexpr auto description_of = L::description();
template <Described L>
using description_type = std::remove_const_t<decltype(description_of<L>)>;

/// The plan of a layer for operands that only run time has, by its description. The compiled library holds it for each
/// description of TESSERA_DESCRIPTIONS (operation/network/descriptions.hpp).
template <class Description>
layer_plan plan_described(const void* description, std::span<const tensor_value* const> x) {
  const Description& layer = *static_cast<const Description*>(description);
  if constexpr (requires { plan_of(layer, *x[0]); }) return plan_of(layer, *x[0]);
  else if constexpr (requires { plan_of(layer, *x[0], *x[1]); }) return plan_of(layer, *x[0], *x[1]);
  else if constexpr (!requires { plan_of(layer, *x[0], *x[1], *x[2]); })
    return plan_of(layer, *x[0], *x[1], *x[2], *x[3]);
  else if constexpr (requires { plan_of(layer, *x[0], *x[1], *x[2], *x[3]); })
    return x.size() == 3 ? plan_of(layer, *x[0], *x[1], *x[2]) : plan_of(layer, *x[0], *x[1], *x[2], *x[3]);
  else return plan_of(layer, *x[0], *x[1], *x[2]);
}

/// The plan that a description makes: the compiler works it out, a program asks the library.
template <class Description>
constexpr layer_plan planned(const Description& layer, const tensor_value& x) {
  if (__builtin_is_constant_evaluated()) return plan_of(layer, x);
  const tensor_value* const one[]{&x};
  return plan_described<Description>(&layer, one);
}

}  // namespace engine

}  // namespace tessera
