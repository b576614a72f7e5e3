#include "subjects.hpp"

#include <tessera/comm/launch/transport_choice.hpp>
#include <tessera/topology/group.hpp>

namespace conformance::training {
namespace {

using names = std::vector<std::string>;

/// The places of axes in a mesh; an axis that it lacks counts as extent 1.
engine::group axes_named(const mesh_value& m, const names& axes) {
  engine::group g;
  for (int a = 0; a < m.axes.count; ++a)
    if (std::any_of(axes.begin(), axes.end(),
                    [&](const std::string& name) { return kept_name(name) == m.axes[a].name; }))
      g.push(a);
  return g;
}

std::vector<int> ranks_of(const mesh_value& m) {
  std::vector<int> ranks;
  for (int i = 0; i < m.size(); ++i) ranks.push_back(m.rank(m.at(i)));
  return ranks;
}

std::vector<int> sorted(std::vector<int> ranks) {
  std::sort(ranks.begin(), ranks.end());
  return ranks;
}

/// The line through a worker along axes.
mesh_value line_of(const mesh_value& m, int rank, const engine::group& axes) {
  coordinates at;
  if (!m.locate(rank, at)) throw unbuilt(fmt::format("a worker {} outside of its mesh", rank));
  return line_through(m, at, axes);
}

/// All lines along axes, by their first members.
std::map<int, std::vector<int>> lines_along(const mesh_value& m, const engine::group& axes) {
  std::map<int, std::vector<int>> all;
  for (int rank : ranks_of(m)) {
    const std::vector<int> line = ranks_of(line_of(m, rank, axes));
    all.emplace(line.front(), line);
  }
  return all;
}

json groups_along(const mesh_value& m, const engine::group& axes, const std::optional<std::vector<int>>& of) {
  json all = json::array();
  if (of)
    for (int rank : *of) all.push_back(ranks_of(line_of(m, rank, axes)));
  else
    for (const auto& [first, line] : lines_along(m, axes)) all.push_back(line);
  return all;
}

json neighbours_along(const mesh_value& m, const engine::group& axes, const std::vector<int>& of) {
  const std::map<int, std::vector<int>> lines = lines_along(m, axes);
  json all = {{"group", json::array()}, {"index", json::array()},    {"first", json::array()},
              {"last", json::array()},  {"previous", json::array()}, {"next", json::array()}};
  int size = 1;
  for (int rank : of) {
    const mesh_value line = line_of(m, rank, axes);
    coordinates at;
    line.locate(rank, at);
    const int index = line.number(at);
    size = line.size();
    const auto step = [&](int by) { return line.rank(line.at((index + by + size) % size)); };
    all["group"].push_back(std::distance(lines.begin(), lines.find(line.rank(line.at(0)))));
    all["index"].push_back(index);
    all["first"].push_back(index == 0);
    all["last"].push_back(index == size - 1);
    all["previous"].push_back(step(-1));
    all["next"].push_back(step(1));
  }
  all["size"] = size;
  all["used"] = size > 1;
  return all;
}

json axes_of(const mesh_value& m) {
  json all = json::array();
  for (const engine::axis_value& a : m.axes)
    all.push_back({std::string(a.name.data, static_cast<std::size_t>(a.name.size)), a.extent});
  return all;
}

/// A mesh that must have all workers of a world.
mesh_value over_all(const mesh_value& m, int workers) {
  check(check(m));
  check(check_world(m, workers));
  return m;
}

/// An axis divided in two, the inner one of neighbours; what is not said follows from the other.
mesh_value divided(const mesh_value& m, const json& said) {
  const int axis = m.find(kept_name(said.at("axis").get<std::string>()));
  if (axis < 0) throw unbuilt("an axis to divide that is none of the mesh");
  const index_t n = m.axes[axis].extent;
  const auto extent = [&](const char* name) {
    return said.at(name).is_null() ? index_t{0} : said.at(name).get<index_t>();
  };
  index_t outer = extent("expert_data");
  index_t inner = extent("expert");
  if (outer == 0 && inner > 0) outer = n / inner;
  else if (inner == 0 && outer > 0) inner = n / outer;
  mesh_value two;
  for (int a = 0; a < m.axes.count; ++a) {
    if (a != axis) two.axes.push(m.axes[a]);
    else
      for (const auto& [name, of] : {std::pair("expert_data", outer), std::pair("expert", inner)})
        two.axes.push({kept_name(name), static_cast<int>(of), 1});
  }
  return over_all(row_major(two), m.size());
}

}  // namespace

/// Groups and neighbours of workers: they follow from the mesh.
task mesh(reading& c) {
  std::optional<std::vector<int>> of;
  if (c.has("of")) of = c.given().at("of").get<std::vector<int>>();
  std::vector<names> keep;
  if (c.has("keep")) keep = c.given().at("keep").get<std::vector<names>>();
  json groups = json::array();
  json neighbours = json::array();
  json dims = json::array();
  const auto all_along = [&](const mesh_value& m, const std::vector<names>& sets) {
    json all = json::array();
    for (const names& one : sets) all.push_back(groups_along(m, axes_named(m, one), of));
    return all;
  };
  for (std::size_t i = 0; i < c.worlds().size(); ++i) {
    world& w = c.worlds()[i];
    mesh_value m = w.mesh();
    std::vector<names> sets = keep;
    if (c.has("per_node")) {
      const index_t local = c.given().list("per_node").at(i);
      m = over_all(mesh_of({{"node", local > 0 ? w.workers() / local : 0}, {"local", local}}), w.workers());
      if (keep.empty()) sets = {{"node"}, {"local"}};
    } else if (m.first == 0 && m.ranks == nullptr && world_of(m) == m.size()) {
      over_all(m, w.workers());
    }
    dims.push_back(axes_of(m));
    groups.push_back(all_along(m, sets));
    json along = json::array();
    json places = json::array();
    const std::vector<int> ranks = of ? *of : sorted(ranks_of(m));
    for (int rank : ranks) {
      coordinates at;
      if (!m.locate(rank, at)) throw unbuilt(fmt::format("a worker {} outside of its mesh", rank));
      places.push_back(std::vector<int>(at.begin(), at.end()));
    }
    for (const names& one : keep) along.push_back(neighbours_along(m, axes_named(m, one), ranks));
    neighbours.push_back({{"ranks", ranks}, {"coordinates", places}, {"along", along}});
  }
  c.compare("dims", dims);
  if (c.has("experts")) {
    json outer = json::array();
    json inner = json::array();
    groups = json::array();
    for (const json& way : c.given().at("experts")) {
      const mesh_value m = divided(c.worlds().at(0).mesh(), way);
      outer.push_back(m.axes[m.find(kept_name("expert_data"))].extent);
      inner.push_back(m.axes[m.find(kept_name("expert"))].extent);
      groups.push_back(all_along(m, keep.empty() ? std::vector<names>{{"expert_data"}, {"expert"}} : keep));
    }
    c.compare("expert_data", outer);
    c.compare("expert", inner);
  }
  c.compare("groups", groups);
  c.compare("worlds", neighbours);
  if (c.has("then")) {
    std::vector<std::pair<std::string, index_t>> axes;
    std::vector<names> each;
    for (const json& one : c.given().at("then")) {
      axes.emplace_back(one.at(0).get<std::string>(), one.at(1).get<index_t>());
      each.push_back({axes.back().first});
    }
    c.compare("groups_then", all_along(over_all(mesh_of(axes), c.worlds().at(0).workers()), each));
  }
  return c.planned();
}

}  // namespace conformance::training
