#include "subjects.hpp"

#include <tessera/comm/launch/environment.hpp>

namespace conformance::training {
namespace {

/// A port, or null where nothing says one.
template <class Port>
json port_of(const Port& port) {
  if constexpr (std::is_integral_v<Port>) return port > 0 ? json(port) : json();
  else return port ? json(*port) : json();
}

/// What a process learns from its environment.
json learned_from(const json& setting) {
  std::map<std::string, std::string> variables;
  launch_choice chosen;
  for (const auto& [name, value] : setting.items()) {
    if (name == "variables") variables = value.get<std::map<std::string, std::string>>();
    else if (name == "devices") chosen.devices = value.get<int>();
    else if (name == "port") chosen.port = value.get<int>();
    else throw unbuilt(fmt::format("the setting '{}'", name));
  }
  const auto get = [&](const char* name) {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  };
  const engine::launch_environment e = read_environment(get, chosen);
  return {{"rank", e.rank},
          {"world", e.world},
          {"local_rank", e.local_rank},
          {"device", e.device < 0 ? json() : json(e.device)},
          {"address", e.address.empty() ? json() : json(e.address)},
          {"port", port_of(e.port)}};
}

}  // namespace

/// What processes learn from their environments; what is not listed is not compared.
task launch(reading& c) {
  const json theirs = c.expected("workers");
  json ours = json::array();
  for (const json& setting : c.given().at("settings")) {
    json all = learned_from(setting);
    if (!theirs.is_null()) {
      const json listed = theirs.at(ours.size());
      json some = json::object();
      for (const auto& [name, value] : listed.items()) {
        if (!all.contains(name)) throw unbuilt(fmt::format("the number '{}'", name));
        some[name] = all[name];
      }
      all = some;
    }
    ours.push_back(all);
  }
  c.compare("workers", ours);
  return c.planned();
}

}  // namespace conformance::training
