#pragma once

#include <tessera/inspect/view.hpp>

#include <algorithm>
#include <map>
#include <vector>

namespace tessera::detail {

/// Workers that hold the same of what a picture shows.
struct held_alike {
  intervals rows;
  intervals columns;
  std::vector<int> ranks;
};

/// The workers that hold each element of a picture.
struct holders {
  std::vector<held_alike> groups;  ///< in mesh order
  std::vector<int> idle;           ///< workers of the mesh that hold nothing
  std::vector<int> elsewhere;      ///< workers that hold only what the picture leaves out
};

/// An interval of a tiling and the part that holds it.
struct part_interval {
  int part = 0;
  interval held;
};

/// Those that hold something, in the order of their elements; of what windows hold the first of each part.
inline std::vector<part_interval> intervals_in_order(const parts& p) {
  std::vector<part_interval> all;
  for (int k = 0; k < p.count(); ++k) {
    const intervals held = p.held(k);
    for (int i = 0; i < (p.of.zigzag ? held.count : 1); ++i)
      if (!held[i].empty()) all.push_back({k, held[i]});
  }
  if (p.of.zigzag)
    std::sort(all.begin(), all.end(),
              [](const part_interval& a, const part_interval& b) { return a.held.lo < b.held.lo; });
  return all;
}

inline intervals one_row() {
  intervals i;
  i.push({0, 1});
  return i;
}

inline holders holders_of(const view& v, const layout& x) {
  const cutting cut(x);
  holders all;
  std::map<std::vector<index_t>, std::size_t> known;
  for (int i = 0; i < x.mesh.size(); ++i) {
    const int rank = x.mesh.rank(x.mesh.at(i));
    if (cut.elements_of(rank) == 0) {
      all.idle.push_back(rank);
      continue;
    }
    const holding h = cut.held_by(rank);
    held_alike g{v.flat() ? one_row() : h[v.rows.dim], v.columns.dim < 0 ? one_row() : h[v.columns.dim], {}};
    bool seen = v.shows(h);
    std::vector<index_t> key;
    const auto look = [&](const intervals& list, const edge_view& edge) {
      bool inside = false;
      for (const interval& a : list) {
        inside = inside || !edge.shown(a).empty();
        key.insert(key.end(), {a.lo, a.hi});
      }
      seen = seen && inside;
      key.push_back(-1);
    };
    look(g.rows, v.rows);
    look(g.columns, v.columns);
    if (!seen) {
      all.elsewhere.push_back(rank);
      continue;
    }
    const auto [entry, fresh] = known.try_emplace(key, all.groups.size());
    if (fresh) all.groups.push_back(g);
    all.groups[entry->second].ranks.push_back(rank);
  }
  return all;
}

}  // namespace tessera::detail
