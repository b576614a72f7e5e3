#include "subjects.hpp"

#include "tools/fabric/bandwidth.hpp"

namespace conformance::training {
namespace {

/// The change of a tensor along all axes of a mesh that is a verb.
fabric::way way_named(const std::string& verb, const mesh_value& mesh) {
  const index_t p = mesh.size();
  const index_t extents[]{p, 1, p};
  for (const fabric::way& w : fabric::ways_along(mesh, (1u << mesh.axes.count) - 1, extents))
    if (verb == engine::name_of(w.is)) return w;
  throw unbuilt(fmt::format("the verb '{}'", verb));
}

}  // namespace

/// The bandwidth on the bus of a verb that took so long, as `scripts/bandwidth` counts it.
task bandwidth(reading& c) {
  const double bytes = c.number("elements", 0) * c.number("element_bytes", 0);
  const double seconds = c.number("seconds", 0);
  json all = json::array();
  for (const auto& verb : c.given().at("verbs").get<std::vector<std::string>>()) {
    json by_world = json::array();
    for (world& w : c.worlds()) {
      const fabric::way way = way_named(verb, w.mesh());
      const double share =
          static_cast<double>(fabric::bus_elements(way)) / static_cast<double>(fabric::algorithm_elements(way));
      by_world.push_back(share * bytes / seconds);
    }
    all.push_back(by_world);
  }
  c.compare("bus_bytes_per_second", all);
  return c.planned();
}

}  // namespace conformance::training
