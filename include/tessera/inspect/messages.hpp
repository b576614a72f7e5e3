#pragma once

#include <tessera/plan/transfer.hpp>

#include <algorithm>
#include <vector>

namespace tessera::engine {

/// The world ranks of a mesh, in order.
inline std::vector<int> ranks_of(const mesh_value& m) {
  std::vector<int> ranks;
  for (int i = 0; i < m.size(); ++i) ranks.push_back(m.rank(m.at(i)));
  std::sort(ranks.begin(), ranks.end());
  return ranks;
}

/// The mesh whose workers receive.
inline const mesh_value& receivers_of(const transfer& plan) {
  return (plan.kind() == map::move ? plan.target() : plan.source()).of.mesh;
}

/// Calls visit(message) for every box that goes from one worker to another: by receiver, then by sender, then by place.
///
/// A worker's own box is no message.
template <class Visit>
void each_message(const transfer& plan, Visit&& visit) {
  std::vector<message> arriving;
  for (int rank : ranks_of(receivers_of(plan))) {
    arriving.clear();
    plan.receives(rank, [&](const message& m) {
      if (m.from != m.to) arriving.push_back(m);
    });
    std::stable_sort(arriving.begin(), arriving.end(), [](const message& a, const message& b) {
      if (a.from != b.from) return a.from < b.from;
      return std::lexicographical_compare(a.where.begin(), a.where.end(), b.where.begin(), b.where.end(),
                                          [](const interval& x, const interval& y) { return x.lo < y.lo; });
    });
    for (const message& m : arriving) visit(m);
  }
}

/// All of them.
inline std::vector<message> messages_of(const transfer& plan) {
  std::vector<message> all;
  each_message(plan, [&](const message& m) { all.push_back(m); });
  return all;
}

}  // namespace tessera::engine
