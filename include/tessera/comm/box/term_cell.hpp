#pragma once

#include <tessera/comm/box/box_transfer.hpp>

#include <algorithm>
#include <utility>
#include <vector>

namespace tessera {

namespace engine {

/// A part of an output where the same terms meet: which receives bring them, in the order in which they are added.
struct term_cell {
  box_vector here;
  box_vector extents;
  std::vector<int> terms;
};

}  // namespace engine

namespace detail {

inline bool apart(const term_cell& c, const box_vector& begin, const box_vector& extents) {
  for (int d = 0; d < begin.count; ++d)
    if (c.here[d] + c.extents[d] <= begin[d] || begin[d] + extents[d] <= c.here[d]) return true;
  return false;
}

// Adds what of a cell lies outside a box to `rest`, as boxes; `shared` becomes what lies inside.
inline void without(term_cell c, const box_vector& begin, const box_vector& extents, std::vector<term_cell>& rest,
                    term_cell* shared) {
  if (apart(c, begin, extents)) {
    rest.push_back(std::move(c));
    return;
  }
  for (int d = 0; d < begin.count; ++d) {
    const index_t lo = std::max(c.here[d], begin[d]);
    const index_t hi = std::min(c.here[d] + c.extents[d], begin[d] + extents[d]);
    for (const auto& [from, to] : {std::pair{c.here[d], lo}, std::pair{hi, c.here[d] + c.extents[d]}}) {
      if (from >= to) continue;
      term_cell side = c;
      side.here[d] = from;
      side.extents[d] = to - from;
      rest.push_back(std::move(side));
    }
    c.here[d] = lo;
    c.extents[d] = hi - lo;
  }
  if (shared != nullptr) *shared = std::move(c);
}

}  // namespace detail

namespace engine {

/// An output of sums, cut into cells where the set of its terms changes. The part that a box shares with a cell becomes
/// a cell with one more term.
inline std::vector<term_cell> cells_of(const std::vector<box_transfer>& receives) {
  std::vector<term_cell> cells;
  for (int i = 0; i < static_cast<int>(receives.size()); ++i) {
    const box_transfer& l = receives[static_cast<std::size_t>(i)];
    if (count_of(l.extents) == 0) continue;
    std::vector<term_cell> fresh{{l.here, l.extents, {i}}};  // what of the box meets no cell
    std::vector<term_cell> all;
    for (const term_cell& c : cells) {
      if (detail::apart(c, l.here, l.extents)) {
        all.push_back(c);
        continue;
      }
      term_cell shared = c;
      detail::without(c, l.here, l.extents, all, &shared);
      shared.terms.push_back(i);
      all.push_back(shared);
      std::vector<term_cell> rest;
      for (const term_cell& f : fresh) detail::without(f, c.here, c.extents, rest, nullptr);
      fresh = std::move(rest);
    }
    all.insert(all.end(), fresh.begin(), fresh.end());
    cells = std::move(all);
  }
  return cells;
}

}  // namespace engine

}  // namespace tessera
