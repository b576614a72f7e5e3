#pragma once
// A layout in a line, for what a failing law says.

#include <tessera/core.hpp>

#include <string>

namespace tessera::testing {

using namespace engine;

inline std::string shown(const layout& x) {
  std::string s = "mesh first " + std::to_string(x.mesh.first);
  for (int a = 0; a < x.placements.count; ++a)
    s += " " + std::string(x.mesh.axes[a].name.data) + "=" + std::to_string(x.mesh.axes[a].extent) + "*" +
         std::to_string(x.mesh.axes[a].stride) + ":" + std::to_string(int(x.placements[a].kind)) + "/" +
         std::to_string(int(x.placements[a].dimension)) + "/" + std::to_string(int(x.placements[a].level)) + "/" +
         std::to_string(x.placements[a].coordinate);
  for (const auto& d : x.dims)
    s += " [" + std::to_string(d.extent) + " g" + std::to_string(d.grain()) + " k" + std::to_string(int(d.kind)) +
         " o" + std::to_string(d.outputs) + " w" + std::to_string(d.needs.a) + "," + std::to_string(d.needs.b) + "," +
         std::to_string(d.needs.b2) + "]";
  return s;
}

}  // namespace tessera::testing
