#pragma once

#include <tessera/nn/file/node_options.hpp>
#include <tessera/operation/routing/route.hpp>

namespace tessera::detail {

/// A router as a file says it.
inline nn::route_layer route_in_file(const nn::node_options& o) {
  const bool over = o.has("over_experts");
  const engine::axis_names axes = o.axes("over_experts", "those that cut the rows");
  return {.experts = o.number("experts"),
          .choices = o.number("choices", 1),
          .capacity = o.real_setting("capacity"),
          .over_experts = over ? engine::setting(axes) : engine::setting<engine::axis_names>(),
          .groups = o.number("groups", 0, "one for each part of the rows"),
          .sigmoid_gates = o.flag("sigmoid_gates", false),
          .normalised_gates = o.flag("normalised_gates", false),
          .drop_by_score = o.flag("drop_by_score", false),
          .noise = o.real("noise", 0),
          .balanced_by_bias = o.real("balanced_by_bias", 0)};
}

}  // namespace tessera::detail
