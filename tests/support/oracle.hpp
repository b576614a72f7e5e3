#pragma once

#include <tessera/topology/layout.hpp>

#include <algorithm>
#include <map>
#include <set>
#include <vector>

/// What a layout means, element by element and without any of the engine's arithmetic: slow, short and obviously right.
namespace tessera::testing::oracle {

using namespace engine;

using element = std::vector<index_t>;

/// Deals `items` to p hands as evenly as can be, the first hands getting the extra ones, keeping their order.
inline std::vector<std::vector<index_t>> deal(const std::vector<index_t>& items, int p) {
  std::vector<std::size_t> sizes(static_cast<std::size_t>(p), 0);
  for (std::size_t i = 0; i < items.size(); ++i) ++sizes[i % static_cast<std::size_t>(p)];
  std::vector<std::vector<index_t>> hands;
  auto next = items.begin();
  for (std::size_t s : sizes) {
    hands.emplace_back(next, next + static_cast<long>(s));
    next += static_cast<long>(s);
  }
  return hands;
}

/// The indices of the cut dimension (of a window: its outputs) that coordinates get.
inline std::vector<index_t> dealt(const layout& x, int dim, const coordinates& c) {
  const dimension& d = x.dims[dim];
  const index_t n = d.kind == cover::tiled ? d.extent : d.outputs;
  std::vector<index_t> units;
  for (index_t u = 0; u * d.grain() < n; ++u) units.push_back(u);
  // Which part: the number of the coordinates, turned. Each cut reads its digit of it; joined axes read one digit
  // together.
  int all = 1;
  int part = 0;
  std::vector<int> cuts;
  for (int level = 0; level < x.levels(dim); ++level) {
    const int a = x.cutter(dim, level);
    const int p = x.mesh.axes[a].extent;
    part = part * p + c[a];
    all *= p;
    if (x.placements[a].joined) cuts.back() *= p;
    else cuts.push_back(p);
  }
  part = (part + d.turned) % all;
  if (d.zigzag) {  // twice as many hands: on the way there and on the way back
    const std::vector<std::vector<index_t>> hands = deal(units, 2 * all);
    units = hands[static_cast<std::size_t>(part)];
    const std::vector<index_t>& back = hands[static_cast<std::size_t>(2 * all - 1 - part)];
    units.insert(units.end(), back.begin(), back.end());
  } else if (d.bounds != nullptr) {
    units.assign(units.begin() + d.bounds[part], units.begin() + d.bounds[part + 1]);
  } else {
    for (int p : cuts) {
      all /= p;
      units = deal(units, p)[static_cast<std::size_t>(part / all % p)];
    }
  }
  std::vector<index_t> mine;
  for (index_t u : units)
    for (index_t i = u * d.grain(); i < (u + 1) * d.grain() && i < n; ++i) mine.push_back(i);
  return mine;
}

/// The element that position i reads, or -1 for padding.
inline index_t read(index_t i, index_t n, boundary edge) {
  if (edge == boundary::periodic) return ((i % n) + n) % n;
  if (edge == boundary::replicate) return std::min(std::max<index_t>(i, 0), n - 1);
  if (edge == boundary::reflect) return i < 0 ? -i : i >= n ? 2 * (n - 1) - i : i;
  return i < 0 || i >= n ? -1 : i;
}

/// The indices of one dimension that coordinates hold, in the order of memory: everything that the hull of their
/// windows reads, in the order in which it is read; a whole turn of a ring lies in order.
inline std::vector<index_t> held(const layout& x, int dim, const coordinates& c) {
  const dimension& d = x.dims[dim];
  const std::vector<index_t> mine = dealt(x, dim, c);
  if (d.kind == cover::tiled) return mine;
  std::vector<index_t> hull;
  if (mine.empty() || d.extent == 0) return hull;
  const auto input = [&](index_t y, index_t reach) {  // ⌊(a·y + reach)/c⌋
    const index_t v = d.needs.a * y + reach;
    return v / d.needs.c - (v % d.needs.c < 0 ? 1 : 0);
  };
  if (d.needs.edge == boundary::inward) {  // as many elements for every output, inside
    const index_t seen = d.needs.b2 - d.needs.b + 1;
    for (index_t y = mine.front(); y <= mine.back(); ++y)
      for (index_t i = 0; i < seen; ++i) {
        const index_t from = std::min(std::max<index_t>(y + d.needs.b, 0), d.extent - seen) + i;
        if (std::find(hull.begin(), hull.end(), from) == hull.end()) hull.push_back(from);
      }
    return hull;
  }
  const bool backwards = d.needs.a < 0;
  const index_t lowest = backwards ? mine.back() : mine.front(), highest = backwards ? mine.front() : mine.back();
  for (index_t i = input(lowest, d.needs.b); i <= input(highest, d.needs.b2); ++i) {
    const index_t from = read(i, d.extent, d.needs.edge);
    if (from < d.needs.unreached_before || from >= d.extent - d.needs.unreached_after) continue;
    if (std::find(hull.begin(), hull.end(), from) == hull.end()) hull.push_back(from);
  }
  if (d.needs.edge != boundary::periodic || static_cast<index_t>(hull.size()) == d.extent)
    std::sort(hull.begin(), hull.end());
  return hull;
}

/// Every element that a world rank holds, in the order of memory.
inline std::vector<element> in_memory(const layout& x, int rank) {
  for (int i = 0; i < x.mesh.size(); ++i) {
    const coordinates c = x.mesh.at(i);
    if (x.mesh.rank(c) != rank) continue;
    for (int a = 0; a < x.placements.count; ++a)
      if (x.placements[a].kind == placement::on && x.placements[a].coordinate != c[a]) return {};
    std::vector<element> all{element{}};
    for (int d = 0; d < x.dims.count; ++d) {
      std::vector<element> longer;
      for (const element& e : all)
        for (index_t k : held(x, d, c)) {
          element next = e;
          next.push_back(k);
          longer.push_back(next);
        }
      all = longer;
    }
    return all;
  }
  return {};
}

/// The same as a set.
inline std::set<element> held(const layout& x, int rank) {
  const std::vector<element> all = in_memory(x, rank);
  return {all.begin(), all.end()};
}

/// The elements of a box.
template <class Box>
std::set<element> elements(const Box& b) {
  std::set<element> all{element{}};
  for (const auto& i : b) {
    std::set<element> longer;
    for (const element& e : all)
      for (index_t k = i.lo; k < i.hi; ++k) {
        element next = e;
        next.push_back(k);
        longer.insert(next);
      }
    all = longer;
  }
  return all;
}

inline int world_of(const layout& a, const layout& b) {
  int last = 0;
  for (const layout* x : {&a, &b})
    for (int i = 0; i < x->mesh.size(); ++i) last = std::max(last, x->mesh.rank(x->mesh.at(i)));
  return last + 1;
}

}  // namespace tessera::testing::oracle
