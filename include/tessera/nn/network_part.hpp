#pragma once

#include <tessera/nn/call.hpp>

#include <map>
#include <string>

namespace tessera::nn {

/// The parameters and buffers of a network, by path, for another one that shares them: what `whole.at("encoder")` gives.
///
/// Handles to the same values: an optimizer over either network steps both, and gradients of both add up. They outlive the network.
struct network_part {
  team_handle team;
  seed begun;  ///< the network's, at the path of the part
  std::map<std::string, parameter> parameters;
  std::map<std::string, buffer> buffers;
};

}  // namespace tessera::nn
