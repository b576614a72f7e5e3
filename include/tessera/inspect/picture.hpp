#pragma once

#include <tessera/inspect/holders.hpp>

#include <string>
#include <vector>

namespace tessera {

namespace detail {

// The indices at which a text picture looks: every element where they are few, else the first one of each interval.
inline std::vector<index_t> looked_at(const edge_view& e, const layout& tiles) {
  std::vector<index_t> all;
  if (e.hi <= 32 || e.dim < 0) {
    for (index_t i = 0; i < e.hi; ++i) all.push_back(i);
    return all;
  }
  const parts p(tiles, e.dim);
  for (const part_interval& part : intervals_in_order(p))
    if (part.held.lo < e.hi) all.push_back(part.held.lo);
  return all;
}

}  // namespace detail

/// A layout as text: each element (of a large dimension each part) shows its worker; `+` means that several hold it.
///
/// At most two dimensions are drawn, those that are cut; of the others, which are named, index 0 is shown.
inline std::string picture(const layout& given) {
  const layout x = engine::drawable(given);
  const engine::view v = engine::choose_view({&given}, false, 360, 250, 16);
  const detail::holders held = detail::holders_of(v, x);
  const layout tiles = detail::without_windows(x);
  std::size_t digits = 1;
  for (const auto& g : held.groups)
    for (int rank : g.ranks) digits = std::max(digits, fmt::format("{}", rank).size());
  std::string s;
  if (const std::string hidden = engine::hidden_text(v, given); !hidden.empty()) s += "  " + hidden + "\n";
  for (index_t row : detail::looked_at(v.rows, tiles)) {
    s += "  ";
    for (index_t column : detail::looked_at(v.columns, tiles)) {
      std::string who = ".";
      for (const auto& g : held.groups) {
        if (engine::position(g.rows, row) < 0 || engine::position(g.columns, column) < 0) continue;
        who = who == "." && g.ranks.size() == 1 ? fmt::format("{}", g.ranks[0]) : "+";
      }
      s += fmt::format(" {:>{}}", who, digits + 1);
    }
    s += '\n';
  }
  return s;
}

}  // namespace tessera
