#include "subjects.hpp"

#include <tessera/tensor/functions.hpp>

namespace conformance::training {
namespace {

/// What is averaged of a case.
struct averaged {
  std::map<std::string, recipe> parameters;
  std::map<std::string, recipe> buffers;  ///< copied with each update
  std::set<std::string> frozen;
  bool only_trainable = true;
  std::uint64_t updates = 0;
  double decay = 0.9999;
  bool gathered = false;

  bool follows(const std::string& name) const { return !only_trainable || frozen.count(name) == 0; }
};

/// The axes whose workers share an average: those named, or all of the world.
std::vector<int> sharing(const mesh_value& m, const std::optional<std::vector<std::string>>& over) {
  std::vector<int> axes;
  for (int a = 0; !over && a < m.axes.count; ++a) axes.push_back(a);
  for (const std::string& name : over.value_or(std::vector<std::string>{})) {
    axes.push_back(m.find(kept_name(name)));
    if (axes.back() < 0) throw unbuilt(fmt::format("the axis '{}' is none of the world", name));
  }
  return axes;
}

}  // namespace

/// Moving averages that workers share as tiles, each worker taking its part of what all have; they are gathered at the
/// end.
task ema(reading& c) {
  averaged of;
  for (const auto& [name, said] : c.entries("parameters")) of.parameters.emplace(name, said);
  if (c.has("frozen"))
    for (const json& name : c.given().at("frozen")) of.frozen.insert(name.get<std::string>());
  of.only_trainable = c.given().flag("only_trainable", true);
  of.updates = static_cast<std::uint64_t>(c.given().integer("updates"));
  of.decay = c.number("decay", 0.9999);
  of.gathered = c.given().flag("gathered");
  if (c.has("buffers"))
    for (const auto& [name, said] : c.entries("buffers")) of.buffers.emplace(name, said);
  std::optional<std::vector<std::string>> over;
  if (c.has("over")) over = c.given().at("over").get<std::vector<std::string>>();
  const std::map<std::string, numbers> expected = c.gradients({}, "averages");
  const std::map<std::string, numbers> copied = c.gradients({}, "buffers");
  for (const auto& [name, said] : expected)
    if (of.parameters.count(name) == 0) throw unbuilt(fmt::format("the average of '{}'", name));
  for (const auto& [name, said] : copied)
    if (of.buffers.count(name) == 0) throw unbuilt(fmt::format("the buffer '{}'", name));
  return c.in_each_world([=](world& w) -> body {
    const std::vector<int> axes = sharing(w.mesh(), over);
    std::map<std::string, layout> lying;
    for (const auto& [name, r] : of.parameters) lying[name] = w.lying(name, r.shape());
    for (const auto& [name, r] : of.buffers) lying[name] = w.lying(name, r.shape());
    return [=](attempt& a) {
      for (const auto& [name, everywhere] : lying) {
        layout tiles = everywhere;
        layout one = everywhere;
        for (int axis : axes) {
          tessera::detail::spread(tiles, axis);
          one.set_placement(axis, held_on(0));
        }
        if (const auto buffer = of.buffers.find(name); buffer != of.buffers.end()) {
          const tensor<dyn> last = to(tiles, a.given(buffer->second.raised(of.updates), everywhere));
          a.compare("the buffer " + name, to(everywhere, last),
                    copied.count(name) == 0 ? std::nullopt : std::optional(copied.at(name)));
          continue;
        }
        const recipe& p = of.parameters.at(name);
        tensor<dyn> average = to(tiles, a.given(p, everywhere));
        for (std::uint64_t k = 1; k <= of.updates && of.follows(name); ++k) {
          const tensor<dyn> now = to(tiles, a.given(p.raised(k), everywhere));
          average = average * of.decay + now * (1 - of.decay);
        }
        const auto wanted = expected.find(name);
        a.compare("the average of " + name, to(of.gathered ? one : everywhere, average),
                  wanted == expected.end() ? std::nullopt : std::optional(wanted->second));
      }
    };
  });
}

}  // namespace conformance::training
