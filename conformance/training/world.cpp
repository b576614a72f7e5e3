#include "world.hpp"

namespace conformance::training {
namespace {

[[noreturn]] void unknown(const std::string& what, const json& said) {
  throw unbuilt(fmt::format("{} {} says nothing here", what, said.dump()));
}

/// How a dimension is cut.
struct cut {
  std::vector<std::string> axes;  ///< outermost first
  integers lengths;
  index_t grain = 1;
  integers factors;  ///< the dimension is a product of these
  std::size_t factor = 0;
};

cut cut_named(const json& said) {
  cut c;
  if (said.is_array()) {
    c.axes = said.get<std::vector<std::string>>();
    return c;
  }
  for (const auto& [name, value] : said.items()) {
    if (name == "axes") c.axes = value.get<std::vector<std::string>>();
    else if (name == "lengths") c.lengths = value.get<integers>();
    else if (name == "grain") c.grain = value.get<index_t>();
    else if (name == "factors") c.factors = value.get<integers>();
    else if (name == "factor") c.factor = value.get<std::size_t>();
    else unknown("the cut", said);
  }
  if (c.grain < 1 || (!c.factors.empty() && c.factor >= c.factors.size())) unknown("the cut", said);
  return c;
}

}  // namespace

text kept_name(const std::string& name) {
  static std::set<std::string> all;
  const std::string& kept = *all.insert(name).first;
  return {kept.data(), static_cast<int>(kept.size())};
}

mesh_value mesh_of(const std::vector<std::pair<std::string, index_t>>& axes) {
  mesh_value m;
  for (const auto& [name, extent] : axes) {
    if (m.axes.count == engine::max_axes) throw unbuilt(fmt::format("more than {} axes", engine::max_axes));
    m.axes.push({kept_name(name), static_cast<int>(std::clamp<index_t>(extent, 0, INT32_MAX)), 1});
  }
  return row_major(m);
}

world::world(const json& said) {
  std::vector<std::pair<std::string, index_t>> axes;
  for (const json& one : said.at("dims")) axes.emplace_back(one.at(0).get<std::string>(), one.at(1).get<index_t>());
  mesh_ = mesh_of(axes);
  for (const auto& [name, value] : said.items()) {
    if (name == "dims" || name == "workers") continue;
    if (name == "first") mesh_.first = value.get<int>();
    else if (name == "strides")
      for (int a = 0; a < mesh_.axes.count; ++a)
        mesh_.axes[a].stride = value.at(static_cast<std::size_t>(a)).get<int>();
    else if (name == "ranks") {
      if (static_cast<int>(value.size()) != mesh_.size()) unknown("the list of ranks", value);
      mesh_.ranks = kept(value.get<std::vector<int>>());
    } else if (name == "chunks") chunks_ = value.get<integers>();
    else if (name == "layouts") layouts_ = value;
    else unknown("the field of a world", json{{name, value}});
  }
  check(check(mesh_));
  workers_ = said.contains("workers") ? said.at("workers").get<int>() : mesh_.axes.empty() ? 1 : world_of(mesh_);
  if (workers_ < 1 || workers_ > most_workers) throw unbuilt(fmt::format("more than {} workers", most_workers));
}

int world::axis(const std::string& name) const {
  const int a = mesh_.find(kept_name(name));
  if (a < 0) throw unbuilt(fmt::format("the axis '{}' of a layout is none of its world", name));
  return a;
}

layout world::named(const json& lies, const integers& extents) const {
  for (const auto& [name, value] : lies.items())
    if (name != "cuts" && name != "letters" && name != "on") unknown("the field of a layout", json{{name, value}});
  const json& cuts = lies.at("cuts");
  if (cuts.size() != extents.size()) unknown(fmt::format("of {} dimensions the layout", extents.size()), lies);
  layout x = whole(mesh_, {});
  std::set<int> cutting;
  for (std::size_t d = 0; d < extents.size(); ++d) {
    const cut how = cut_named(cuts[d]);
    const int first = x.dims.count;
    if (!how.factors.empty() && volume_of(how.factors) != extents[d])
      unknown(fmt::format("of the extent {} the cut", extents[d]), cuts[d]);
    for (index_t n : how.factors.empty() ? integers{extents[d]} : how.factors) x.dims.push(uncut(n));
    const int dim = first + static_cast<int>(how.factor);
    for (const std::string& name : how.axes) {
      x.cut_by(dim, axis(name));
      if (!cutting.insert(axis(name)).second) unknown("the axis twice in", lies);
    }
    if (how.grain > 1) x.dims[dim].set_grain(how.grain);
    if (how.lengths.empty() || how.axes.empty()) continue;
    integers bounds{0};
    for (index_t n : how.lengths) bounds.push_back(bounds.back() + n);
    if (static_cast<int>(how.lengths.size()) != x.part_count(dim) || bounds.back() != x.dims[dim].extent)
      unknown("the list of lengths", cuts[d]);
    x.dims[dim].bounds = kept(bounds);
  }
  const json& letters = lies.at("letters");
  if (static_cast<int>(letters.size()) != mesh_.axes.count) unknown("the layout", lies);
  for (const auto& [name, letter] : letters.items()) {
    const int a = axis(name);
    const bool cuts_here = cutting.count(a) != 0;
    if ((letter == "V") != cuts_here) unknown("the letters and cuts", lies);
    if (letter == "R") x.placements[a] = {placement::replicate};
    else if (letter == "I") x.placements[a] = {placement::invariant};
    else if (letter == "P") x.placements[a] = {placement::partial};
    else if (letter == "O")
      x.placements[a] =
          held_on(lies.contains("on") && lies.at("on").contains(name) ? lies.at("on").at(name).get<int>() : 0);
    else if (letter != "V") unknown("the letter", letter);
  }
  return x;
}

layout world::lying(const std::string& tensor, const integers& extents) {
  layout x = whole(mesh_, extents);
  for (engine::axis_placement& r : x.placements) r = {placement::invariant};
  if (names(tensor)) {
    read_.insert(tensor);
    x = named(layouts_.at(tensor), extents);
  }
  check(check(x));
  return x;
}

layout world::lying_first(const std::string& tensor, const integers& extents) {
  if (names(tensor)) {
    json longer = layouts_.at(tensor);
    while (longer.at("cuts").size() < extents.size()) longer.at("cuts").push_back(json::array());
    read_.insert(tensor);
    const layout x = named(longer, extents);
    check(check(x));
    return x;
  }
  return lying(tensor, extents);
}

world world::alone() const {
  world one = *this;
  for (engine::axis_value& a : one.mesh_.axes) a.extent = 1;
  one.mesh_ = row_major(one.mesh_);
  one.workers_ = 1;
  for (auto& [name, lies] : one.layouts_.items()) {
    lies.erase("on");
    for (json& how : lies["cuts"])
      if (how.is_object()) how.erase("lengths");
  }
  return one;
}

std::vector<std::string> world::unread() const {
  std::vector<std::string> all;
  for (const auto& [name, lies] : layouts_.items())
    if (read_.count(name) == 0) all.push_back(name);
  return all;
}

}  // namespace conformance::training
