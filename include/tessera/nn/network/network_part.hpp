#pragma once

#include <tessera/nn/call/call.hpp>

#include <map>
#include <string>

namespace tessera::nn::engine {

/// The parameters and buffers of a network, by path, for another one that shares them: what `whole.at("encoder")`
/// gives.
///
/// Handles to the same values: an optimizer over either network steps both, and gradients of both add up. They outlive
/// the network.
struct network_part {
  team_handle team;
  seed begun;  ///< the network's, at the path of the part
  std::map<std::string, parameter> parameters;
  std::map<std::string, buffer> buffers;

  /// Whether what lies under the path is what one layer has: names alone stand behind it.
  bool is_one_layer() const {
    const std::string front = begun.key("");
    bool some = false;
    const auto names_alone = [&](const auto& all) {
      const auto is_within = [&](auto one) { return one != all.end() && one->first.starts_with(front); };
      auto one = all.lower_bound(front);
      for (; is_within(one) && one->first.find('.', front.size()) == std::string::npos; ++one) some = true;
      return !is_within(one);
    };
    return names_alone(parameters) && names_alone(buffers) && some;
  }
};

}  // namespace tessera::nn::engine
