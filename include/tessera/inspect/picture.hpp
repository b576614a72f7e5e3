#pragma once

#include <tessera/inspect/text.hpp>

#include <vector>

namespace tessera {

/// Who holds what of the last two dimensions, as text: each element shows its worker; `+` means that several hold it.
///
/// Dimensions before the last two are shown at index 0.
inline std::string picture(const layout& x) {
  const int d = x.dims.count;
  const index_t rows = d >= 2 ? x.dims[d - 2].extent : 1;
  const index_t columns = d >= 1 ? x.dims[d - 1].extent : 1;
  std::vector<int> holder(static_cast<std::size_t>(rows * columns), -1);
  const cutting cut(x);
  for (int i = 0; i < x.mesh.size(); ++i) {
    const coordinates at = x.mesh.at(i);
    if (!cut.holds(at)) continue;
    bool shown = true;
    for (int k = 0; k + 2 < d; ++k) {
      bool first = false;
      for (const interval& held : cut.held(k, at)) first = first || (held.lo == 0 && held.hi > 0);
      shown = shown && first;
    }
    if (!shown) continue;
    const intervals whole = [] {
      intervals one;
      one.push({0, 1});
      return one;
    }();
    for (const interval& r : d >= 2 ? cut.held(d - 2, at) : whole)
      for (const interval& c : d >= 1 ? cut.held(d - 1, at) : whole)
        for (index_t y = r.lo; y < r.hi; ++y)
          for (index_t z = c.lo; z < c.hi; ++z) {
            int& who = holder[static_cast<std::size_t>(y * columns + z)];
            who = who == -1 ? x.mesh.rank(at) : -2;
          }
  }
  std::string s;
  if (d > 2) {
    s += "  slice [";
    for (int k = 0; k + 2 < d; ++k) s += "0, ";
    s += ":, :]\n";
  }
  for (index_t y = 0; y < rows; ++y) {
    s += "  ";
    for (index_t z = 0; z < columns; ++z) {
      const int who = holder[static_cast<std::size_t>(y * columns + z)];
      s += who == -1 ? "  ." : who == -2 ? "  +" : fmt::format("{:>3}", who);
    }
    s += '\n';
  }
  return s;
}

}  // namespace tessera
