#pragma once

#include <tessera/comm/launch/environment.hpp>

#include <chrono>
#include <functional>
#include <string>
#include <vector>

namespace tessera::engine {

/// A meeting point for processes without connections: each hands in a text, and gets all texts by rank, or an error
/// within the time limit.
using rendezvous = std::function<std::vector<std::string>(const launch_environment& started, const std::string& mine,
                                                          std::chrono::seconds limit)>;

}  // namespace tessera::engine
