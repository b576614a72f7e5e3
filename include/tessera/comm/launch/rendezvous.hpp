#pragma once

#include <tessera/comm/launch/environment.hpp>

#include <chrono>
#include <functional>
#include <string>
#include <vector>

namespace tessera::engine {

/// Where processes meet that nothing connects yet: each hands in a text, and gets the texts of all, by rank, or an
/// error within the time limit.
using rendezvous = std::function<std::vector<std::string>(const launch_environment& started, const std::string& mine,
                                                          std::chrono::seconds limit)>;

}  // namespace tessera::engine
