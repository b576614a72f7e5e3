#pragma once

#include <tessera/comm/launch/environment.hpp>

#include <cstdlib>

namespace tessera {

TESSERA_INLINE engine::launch_environment read_environment(const engine::launch_choice& chosen) {
  return read_environment([](const char* name) { return std::getenv(name); }, chosen);
}

}  // namespace tessera
