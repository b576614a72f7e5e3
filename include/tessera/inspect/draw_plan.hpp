#pragma once

#include <tessera/inspect/draw_layout.hpp>
#include <tessera/plan/collective.hpp>

namespace tessera::detail {

/// A box of a worker's part and the worker at the other end: where it comes from, or of a Fold goes to.
struct piece {
  box where;
  int other = 0;
};

/// A worker of the side that is no tiling: what it holds and which pieces it is made of.
struct composed_box {
  int rank = 0;
  std::vector<piece> pieces;
};

/// The workers whose parts a picture shows, each with its pieces, by rank.
inline std::vector<composed_box> composed_of(const view& v, const transfer& plan) {
  std::vector<composed_box> all;
  for (int rank : ranks_of(plan.target().of.mesh)) {
    composed_box c{rank, {}};
    const auto add = [&](const message& m) {
      if (!v.shows(m.where) || area_of(v, m.where).w == 0) return;
      const int other = plan.kind() == map::move ? m.from : m.to;
      c.pieces.push_back({m.where, other});
    };
    if (plan.kind() == map::move) plan.receives(rank, add);
    else plan.sends(rank, add);
    if (!c.pieces.empty()) all.push_back(std::move(c));
  }
  return all;
}

// Pieces in the colour of the worker at the other end: what crosses is full and carries its number, what stays is pale.
inline void draw_pieces(const sheet& s, const composed_box& c, double x0, double y0) {
  for (const piece& p : c.pieces) {
    const std::string colour = s.colours.of(p.other);
    const bool stays = p.other == c.rank;
    area a = area_of(s.v, p.where);
    const double least = stays ? 0 : 2;  // a thin halo of a large tile is seen, too
    a.w = std::max(a.w, least);
    a.h = std::max(a.h, least);
    s.to.rect(x0 + a.x, y0 + a.y, a.w, a.h, colour, stays ? 0.3 : 1,
              std::min(a.w, a.h) < 6 ? "" : "stroke='#ffffff' stroke-width='1'");
    const std::string number = fmt::format("{}", p.other);
    if (!stays && a.h >= 11 && a.w >= drawing::width_of(number, 10) + 2)
      s.to.text(x0 + a.x + a.w / 2, y0 + a.y + a.h / 2 + 3.5, number, 10, "#ffffff", "middle", true);
  }
}

// Whether no two workers hold the same element of what is drawn.
inline bool disjoint(const transfer& plan) {
  const layout& x = plan.target().of;
  for (const dimension& d : x.dims)
    if (d.kind != cover::tiled) return false;
  for (int a = 0; a < x.placements.count; ++a)
    if (x.mesh.axes[a].extent > 1 && x.placements[a].kind != placement::cut && x.placements[a].kind != placement::on)
      return false;
  return true;
}

// One map for all workers, whose parts do not overlap.
inline area draw_one_map(const sheet& s, const layout& x, const std::vector<composed_box>& all, double x0, double y0) {
  const double left = x0 + names_room(s.v, x), top = y0 + 32;
  s.to.rect(left, top, s.v.columns.size, s.v.rows.size, drawing::paper);
  for (const composed_box& c : all) draw_pieces(s, c, left, top);
  draw_elements(s, left, top);
  for (const held_alike& g : holders_of(s.v, x).groups)
    for (const area& a : areas_of(s.v, g.rows, g.columns)) {
      s.to.outline(left + a.x, top + a.y, a.w, a.h, drawing::ink, 1.6);
      const double wide = drawing::chip_width(g.ranks[0]);
      if (a.h > 30 && a.w > wide + 3)
        s.to.chip(left + a.x + wide / 2 + 2, top + a.y + 10, g.ranks[0], s.colours.of(g.ranks[0]));
      else if (s.v.flat())
        s.to.chip(left + a.x + a.w / 2, top + s.v.rows.size + 12, g.ranks[0], s.colours.of(g.ranks[0]));
    }
  draw_edges(s, x, left, top);
  return {left, top, s.v.columns.size, s.v.rows.size + (s.v.flat() ? 20 : 0)};
}

// A row for each worker, over the tiles of the other side.
inline area draw_rows(const sheet& s, const layout& tiles, const std::vector<composed_box>& all, double x0, double y0) {
  constexpr std::size_t most = 24;
  const double left = x0 + 34, top = y0 + 16;
  draw_edges(s, tiles, left, top, false);
  view row = s.v;
  row.rows.size = 18;
  double y = top;
  for (std::size_t i = 0; i < all.size() && i < most; ++i, y += 22) {
    s.to.rect(left, y, s.v.columns.size, 18, drawing::paper);
    draw_pieces({s.to, row, s.colours}, all[i], left, y);
    s.to.chip(left - 20, y + 9, all[i].rank, s.colours.of(all[i].rank));
  }
  if (all.size() > most)
    s.to.text(left, (y += 16) - 4, fmt::format("and {} more workers", all.size() - most), 11, drawing::faint);
  return {left, top, s.v.columns.size, y - top};
}

// A small map for each worker.
inline area draw_small_maps(const sheet& s, const char* words, const std::vector<composed_box>& all, double x0,
                            double y0) {
  constexpr std::size_t most = 16;
  view small = s.v;
  const double scale = std::min({1.0, 150 / s.v.columns.size, 120 / s.v.rows.size});
  small.columns.size *= scale;
  small.rows.size *= scale;
  const std::size_t across = all.size() <= 4 ? 2 : all.size() <= 9 ? 3 : 4, shown = std::min(all.size(), most);
  const double step_x = std::max(small.columns.size, 60.0) + 18, step_y = small.rows.size + 36, top = y0 + 16;
  for (std::size_t i = 0; i < shown; ++i) {
    const double x = x0 + step_x * static_cast<double>(i % across),
                 y = top + 18 + step_y * static_cast<double>(i / across);
    const double wide = drawing::chip_width(all[i].rank);
    s.to.rect(x, y, small.columns.size, small.rows.size, drawing::paper);
    draw_pieces({s.to, small, s.colours}, all[i], x, y);
    s.to.outline(x, y, small.columns.size, small.rows.size, "#c3cad4", 1);
    s.to.chip(x + wide / 2, y - 10, all[i].rank, s.colours.of(all[i].rank));
    s.to.text(x + wide + 5, y - 6, words, 10, drawing::faint);
  }
  double high = step_y * static_cast<double>((shown + across - 1) / across) - 18;
  if (all.size() > most)
    s.to.text(x0, top + (high += 18), fmt::format("and {} more workers", all.size() - most), 11, drawing::faint);
  return {x0, top, step_x * static_cast<double>(std::min(shown, across)) - 18, high};
}

/// The side that is no tiling: one map where parts do not overlap, else a row or a small map for each worker.
inline area draw_composed(const sheet& s, const transfer& plan, double x0, double y0) {
  const std::vector<composed_box> all = composed_of(s.v, plan);
  if (disjoint(plan)) return draw_one_map(s, plan.target().of, all, x0, y0);
  if (s.v.flat()) return draw_rows(s, plan.source().of, all, x0, y0);
  return draw_small_maps(s, plan.kind() == map::move ? "gets" : "gives", all, x0, y0);
}

}  // namespace tessera::detail
