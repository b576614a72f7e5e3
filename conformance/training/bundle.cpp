#include "subjects.hpp"

#include <tessera/operation/plan/bundles.hpp>

namespace conformance::training {
namespace {

json bundles_of(const integers& elements, const std::vector<std::string>& types, const json& over,
                const engine::bundle_limits& limits) {
  std::vector<std::pair<element, json>> kinds;
  engine::bundle_packer<std::size_t, 32> packer(limits);
  json bundles = json::array();
  json alone = json::array();
  for (std::size_t m = 0; m < elements.size(); ++m) {
    const std::pair kind(element_named(types[m]), over.is_null() ? json() : over.at(m));
    const auto known = std::find(kinds.begin(), kinds.end(), kind);
    const auto number = static_cast<std::size_t>(known - kinds.begin());
    if (known == kinds.end()) kinds.push_back(kind);
    const index_t bytes = elements[m] * engine::bytes_of(kind.first);
    const engine::bundle_range lies = packer.add(number, bytes);
    if (lies.alone()) {
      alone.push_back(m);
      continue;
    }
    if (lies.begin == 0 && lies.bundle == static_cast<int>(bundles.size()))
      bundles.push_back({{"members", json::array()}, {"offsets", json::array()}});
    json& to = bundles[static_cast<std::size_t>(lies.bundle)];
    to["members"].push_back(m);
    to["offsets"].push_back(lies.begin);
    to["bytes"] = limits.aligned(lies.begin + bytes);
  }
  return {{"bundles", bundles}, {"alone", alone}};
}

}  // namespace

/// Gradients laid into flat buffers.
task bundle(reading& c) {
  const integers elements = c.given().list("elements");
  engine::bundle_limits limits;
  limits.alignment = c.given().integer("alignment");
  if (c.has("capacity")) limits.capacity = c.given().integer("capacity");
  const auto types = c.has("types") ? c.given().at("types").get<std::vector<std::string>>()
                                    : std::vector<std::string>(elements.size(), "float32");
  const json over = c.has("over") ? c.given().at("over") : json();
  if (types.size() != elements.size() || (!over.is_null() && over.size() != elements.size()))
    throw unbuilt("a type and axes for each of the elements");
  const json ours = bundles_of(elements, types, over, limits);
  c.compare("bundles", ours["bundles"]);
  c.compare("alone", ours["alone"]);
  return c.planned();
}

}  // namespace conformance::training
