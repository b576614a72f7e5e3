#pragma once

#include <tessera/inspect/view.hpp>

#include <vector>

namespace tessera::detail {

/// A rectangle in pixels, from the corner of a map.
struct area {
  double x = 0, y = 0, w = 0, h = 0;
};

inline area area_of(const view& v, const interval& rows, const interval& columns) {
  const interval y = v.rows.shown(rows), x = v.columns.shown(columns);
  if (x.empty() || y.empty()) return {};
  return {v.columns.at(x.lo), v.rows.at(y.lo), v.columns.at(x.hi) - v.columns.at(x.lo),
          v.rows.at(y.hi) - v.rows.at(y.lo)};
}

inline area area_of(const view& v, const box& b) {
  return area_of(v, v.flat() ? interval{0, 1} : b[v.rows.dim], v.columns.dim < 0 ? interval{0, 1} : b[v.columns.dim]);
}

inline std::vector<area> areas_of(const view& v, const intervals& rows, const intervals& columns) {
  std::vector<area> all;
  for (const interval& r : rows)
    for (const interval& c : columns)
      if (const area a = area_of(v, r, c); a.w > 0 && a.h > 0) all.push_back(a);
  return all;
}

}  // namespace tessera::detail
