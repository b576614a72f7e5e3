#pragma once

#include <tessera/plan/interval.hpp>

#include <map>
#include <set>
#include <vector>

/// What a layout means, element by element and without any of the engine's arithmetic: slow, short and obviously right.
namespace tessera::testing::oracle {

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

/// The indices of one dimension that coordinates hold.
inline std::set<index_t> held(const layout& x, int dim, const coordinates& c) {
  const dimension& d = x.dims[dim];
  const index_t n = d.kind == cover::tiled ? d.extent : d.outputs;
  std::vector<index_t> units;
  for (index_t u = 0; u * d.grain() < n; ++u) units.push_back(u);
  for (int level = 0; level < x.levels(dim); ++level) {
    const int a = x.cutting(dim, level);
    units = deal(units, x.mesh.axes[a].extent)[static_cast<std::size_t>(c[a])];
  }
  std::set<index_t> mine;
  for (index_t u : units)
    for (index_t i = u * d.grain(); i < (u + 1) * d.grain() && i < n; ++i) mine.insert(i);
  if (d.kind == cover::tiled || mine.empty()) return mine;
  // The hull of the windows of my outputs, inside the tensor.
  index_t lo = INT64_MAX;
  index_t hi = INT64_MIN;
  for (index_t y : mine) {
    lo = std::min(lo, d.needs.a * y + d.needs.b);
    hi = std::max(hi, d.needs.a * y + d.needs.b2);
  }
  std::set<index_t> hull;
  for (index_t i = lo; i <= hi; ++i)
    if (i >= 0 && i < d.extent) hull.insert(i);
  return hull;
}

/// Every element that a world rank holds.
inline std::set<element> held(const layout& x, int rank) {
  for (int i = 0; i < x.mesh.size(); ++i) {
    const coordinates c = x.mesh.at(i);
    if (x.mesh.rank(c) != rank) continue;
    for (int a = 0; a < x.roles.count; ++a)
      if (x.roles[a].kind == role::on && x.roles[a].coordinate != c[a]) return {};
    std::set<element> all{element{}};
    for (int d = 0; d < x.dims.count; ++d) {
      std::set<element> longer;
      for (const element& e : all)
        for (index_t i : held(x, d, c)) {
          element next = e;
          next.push_back(i);
          longer.insert(next);
        }
      all = longer;
    }
    return all;
  }
  return {};
}

/// The elements of a box.
inline std::set<element> elements(const box& b) {
  std::set<element> all{element{}};
  for (const interval& i : b) {
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
