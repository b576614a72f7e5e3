#pragma once

#include <tessera/operation/plan/plan_described.hpp>
#include <tessera/operation/program/flow.hpp>

namespace tessera {

namespace nn {

/// The base of layers, so that they take flows: `layer(x, y)`.
template <class Self>
struct layer {
  template <engine::FlowType... F>
  constexpr auto operator()(const F&... x) const {
    const auto y = tessera::detail::passed_on<Self>(x...);
    using verdict = typename decltype(y)::verdict;
    verdict::template refuse<verdict>();
    return tessera::detail::silent<Self>(y);
  }
};

namespace engine {

/// A layer that its description says whole, `description()`: `plan_of` it is its plan, `forward` of it what it
/// computes. Run time keeps the description and forgets the type, so a program holds no code of its own for such a
/// layer.
template <class Self>
struct described_layer : layer<Self> {
  static constexpr layer_plan plan(const tensor_value& x) { return engine::planned(Self::description(), x); }
};

}  // namespace engine

}  // namespace nn
}  // namespace tessera
