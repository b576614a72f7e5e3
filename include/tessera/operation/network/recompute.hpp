#pragma once

#include <tessera/operation/program/chain.hpp>

namespace tessera::nn {

/// A layer or a module of which forward keeps only what comes in, and which runs again for its backward:
/// `recompute<transformer_block>`.
///
/// Activations within the part live one part at a time, and its forward costs twice, its exchanges too (Chen et al.
/// 2016, arXiv 1604.06174). Keys, values and gradients of every order are those of the part itself. A dropout in it
/// draws the same mask again, and buffers are assigned once.
template <class Part>
struct recompute {
  using wraps = Part;
  static constexpr int results = tessera::detail::result_count<Part>();
  static constexpr Part inside() { return {}; }
  template <class Call, engine::FlowType First, engine::FlowType... Rest>
  constexpr auto around(const Call& call, const First& first, const Rest&... rest) const {
    const auto again = [&](const auto& in, const auto&... others) {
      const int which = in.in->begin_recomputed();
      const auto y = call(in, others...);
      in.in->end_recomputed(which);
      return y;
    };
    if constexpr (engine::DynamicFlow<First>) return first.in->as_unit(again, first, rest...);
    else return again(first, rest...);
  }
  template <engine::FlowType... F>
  constexpr auto operator()(const F&... x) const {
    return around(tessera::detail::module_of<Part>{}, x...);
  }
};

}  // namespace tessera::nn
