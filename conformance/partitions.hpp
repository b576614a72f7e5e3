#pragma once
// What plans say about workers, by the names of the file: groups, overlaps, halos, local shapes.

#include "grids.hpp"

#include <tessera/plan/cost_of.hpp>

#include <optional>

namespace conformance {

/// Calls visit(message) for every box of a change of layout, workers' own ones included.
template <class Visit>
void each_message(const layout& from, const layout& to, Visit&& visit) {
  change c = change_between(from, to);
  if (c.steps.empty()) c.steps.push({map::move, from, to, combine::sum});
  for (const step& s : c.steps) {
    const mesh_value senders = s.from.mesh;
    for (int i = 0; i < senders.size(); ++i) s.plan().sends(senders.rank(senders.at(i)), visit);
  }
}

inline std::vector<int> ranks_of(const mesh_value& m) {
  std::vector<int> all;
  for (int i = 0; i < m.size(); ++i) all.push_back(m.rank(m.at(i)));
  return all;
}

/// Who gets what from whom when a worker of `roots` meets several of the other mesh: root first, then in the order of
/// the union, whose first members are those of `first`.
inline json broadcast_groups(const layout& from, const layout& to, bool to_many) {
  std::map<int, std::set<int>> members;
  each_message(from, to, [&](const message& m) { members[to_many ? m.from : m.to].insert(to_many ? m.to : m.from); });
  std::vector<int> order = ranks_of(from.mesh);
  for (int r : ranks_of(to.mesh))
    if (std::find(order.begin(), order.end(), r) == order.end()) order.push_back(r);
  json groups = json::array();
  json by_root = json::object();
  for (int root : ranks_of(to_many ? from.mesh : to.mesh)) {
    json group{root};
    json listed = json::array();
    for (int r : order) {
      if (members[root].count(r) == 0) continue;
      if (r != root) group.push_back(r);
      listed.push_back(r);
    }
    groups.push_back(group);
    by_root[std::to_string(root)] = listed;
  }
  return {{"groups_world_ranks_root_first", groups}, {"members", by_root}};
}

/// Workers that a change connects, each group in the order of the mesh.
inline json connected_groups(const layout& from, const layout& to) {
  const std::vector<int> ranks = ranks_of(from.mesh);
  std::map<int, int> leader;
  for (int r : ranks) leader[r] = r;
  const auto top = [&](int r) {
    while (leader[r] != r) r = leader[r];
    return r;
  };
  each_message(from, to, [&](const message& m) { leader[top(m.from)] = top(m.to); });
  std::vector<std::vector<int>> groups;
  std::map<int, std::size_t> place;
  for (int r : ranks) {
    const auto [at, fresh] = place.try_emplace(top(r), groups.size());
    if (fresh) groups.emplace_back();
    groups[at->second].push_back(r);
  }
  return groups;
}

/// Every box of a change between tilings: [source, destination, lo, hi], by source, then destination.
inline json overlaps_of(const layout& from, const layout& to) {
  json boxes = json::array();
  int messages = 0;
  int own = 0;
  each_message(from, to, [&](const message& m) {
    integers lo;
    integers hi;
    for (const engine::interval& i : m.where) {
      lo.push_back(i.lo);
      hi.push_back(i.hi);
    }
    boxes.push_back({m.from, m.to, lo, hi});
    ++(m.from == m.to ? own : messages);
  });
  std::sort(boxes.begin(), boxes.end());
  return {{"overlaps", boxes},
          {"n_messages", messages},
          {"n_self", own},
          {"overlap_fields", {"src_world_rank", "dst_world_rank", "global_lo", "global_hi"}}};
}

/// A window along each dimension of a tensor; one that looks at single elements changes nothing.
using windows = std::vector<sliding>;

/// Lets every dimension with a window hold what its outputs need.
inline layout hold(layout tiles, const windows& of) {
  check(tessera::detail::hold_windows(tiles, 0, of.data(), static_cast<int>(of.size())));
  return tiles;
}

/// The halo of one worker: `recv` and `send` are those of the plan; `needed` is the slice of the padded tensor that the
/// local operation sees, where a surplus at the far end counts as seen.
inline json halo_of(const layout& tiles, const layout& haloed, const windows& of, const coordinates& at) {
  const int me = tiles.mesh.rank(at);
  const box own = box_of(tiles, me);
  const box held = box_of(haloed, me);
  layout outputs = tiles;
  for (int d = 0; d < tiles.dims.count; ++d)
    outputs.dims[d] = uncut(of[static_cast<std::size_t>(d)].outputs(tiles.dims[d].extent));
  const box made = box_of(outputs, me);
  std::vector<integers> recv, send, needed, padding;
  integers local, spatial;
  const transfer plan{map::move, tiles, haloed};
  for (int d = 0; d < tiles.dims.count; ++d) {
    const sliding& w = of[static_cast<std::size_t>(d)];
    const int last = tiles.mesh.axes[d].extent - 1;
    const index_t before = at[d] == 0 ? w.before : 0;
    const index_t after = at[d] == last ? w.after : 0;
    integers ghosts{std::max<index_t>(0, own[d].lo - held[d].lo), std::max<index_t>(0, held[d].hi - own[d].hi)};
    if (held[d].empty()) ghosts = {0, 0};
    const index_t trimmed = w.needs().first(made[d].lo) - (own[d].lo - before);
    integers sent{0, 0};
    plan.sends(me, [&](const message& m) {
      coordinates to;
      haloed.mesh.locate(m.to, to);
      for (int a = 0; a < to.count; ++a)
        if (a != d && to[a] != at[a]) return;
      if (to[d] != at[d]) sent[to[d] < at[d] ? 0 : 1] = m.where[d].size();
    });
    local.push_back(own[d].size());
    recv.push_back(ghosts);
    send.push_back(sent);
    padding.push_back({before, after});
    needed.push_back({std::max<index_t>(0, trimmed), own[d].size() + before + after + ghosts[0] + ghosts[1]});
    if (d >= 2) spatial.push_back(made[d].size());
  }
  return {{"index", std::vector<int>(at.begin(), at.end())},
          {"rank", tiles.mesh.number(at)},
          {"x_local", local},
          {"halo", recv},
          {"recv", recv},
          {"send", send},
          {"needed", needed},
          {"local_padding", padding},
          {"y_local_spatial", spatial}};
}

inline json halos_of(const layout& tiles, const layout& haloed, const windows& of) {
  json all = json::array();
  for (int i = 0; i < tiles.mesh.size(); ++i) all.push_back(halo_of(tiles, haloed, of, tiles.mesh.at(i)));
  return all;
}

/// Lists where the file's numbers are not ours; a number that we do not have makes the case unbuilt.
inline void compare(const json& theirs, const json& ours, const std::string& where,
                    std::vector<std::string>& mismatches) {
  if (theirs.is_object() && ours.is_object()) {
    for (const auto& [name, value] : theirs.items()) {
      if (!ours.contains(name)) throw unbuilt(fmt::format("the number '{}{}' is not known here", where, name));
      compare(value, ours.at(name), where + name + " ", mismatches);
    }
  } else if (theirs != ours) {
    mismatches.push_back(fmt::format("{}is {}, not {}", where, ours.dump(), theirs.dump()));
  }
}

/// The same for lists of workers: each entry of theirs is found in ours by its `index` or its `rank`.
inline void compare_workers(const json& theirs, const json& ours, std::vector<std::string>& mismatches) {
  for (const json& one : theirs) {
    const char* key = one.contains("index") ? "index" : "rank";
    const auto same = [&](const json& o) { return o.at(key) == one.at(key); };
    const auto found = std::find_if(ours.begin(), ours.end(), same);
    if (found == ours.end()) throw unbuilt(fmt::format("there is no worker {} {}", key, one.at(key).dump()));
    compare(one, *found, fmt::format("worker {} ", one.at(key).dump()), mismatches);
  }
}

}  // namespace conformance
