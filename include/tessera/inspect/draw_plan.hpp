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
struct composed {
  int rank = 0;
  std::vector<piece> pieces;
  bool moves = false;  ///< some piece crosses
};

inline area area_of(const view& v, const box& b) {
  return area_of(v, v.flat() ? interval{0, 1} : b[v.rows.dim], v.columns.dim < 0 ? interval{0, 1} : b[v.columns.dim]);
}

/// The workers whose parts a picture shows, each with its pieces, by rank.
inline std::vector<composed> composed_of(const view& v, const transfer& plan) {
  std::vector<composed> all;
  for (int rank : ranks_of(plan.target().of.mesh)) {
    composed c{rank, {}, false};
    const auto add = [&](const message& m) {
      if (!v.shows(m.where) || area_of(v, m.where).w == 0) return;
      const int other = plan.what() == map::move ? m.from : m.to;
      c.pieces.push_back({m.where, other});
      c.moves = c.moves || other != rank;
    };
    if (plan.what() == map::move) plan.receives(rank, add);
    else plan.sends(rank, add);
    if (!c.pieces.empty()) all.push_back(std::move(c));
  }
  return all;
}

// Pieces in the colour of the worker at the other end: what crosses is full and carries its number, what stays is pale.
inline void draw_pieces(const sheet& s, const composed& c, double x0, double y0) {
  for (const piece& p : c.pieces) {
    const std::string colour = s.colours.of(p.other);
    const bool stays = p.other == c.rank;
    area a = area_of(s.v, p.where);
    const double least = stays ? 0 : 2;  // a thin halo of a large tile is seen, too
    a.w = std::max(a.w, least);
    a.h = std::max(a.h, least);
    s.to.rect(x0 + a.x, y0 + a.y, a.w, a.h, colour, stays ? 0.3 : 1, std::min(a.w, a.h) < 6 ? "" : "stroke='#ffffff' stroke-width='1'");
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
  for (int a = 0; a < x.roles.count; ++a)
    if (x.mesh.axes[a].extent > 1 && x.roles[a].kind != role::cut && x.roles[a].kind != role::on) return false;
  return true;
}

// The side that is no tiling: one map where parts do not overlap, else a small map or a lane for each worker.
inline area draw_composed(const sheet& s, const transfer& plan, double x0, double y0) {
  const std::vector<composed> all = composed_of(s.v, plan);
  const layout& x = plan.target().of;
  const bool move = plan.what() == map::move;
  double wide = s.v.columns.size, high = s.v.rows.size;
  double left = x0, top = y0 + 32;
  const bool one = disjoint(plan);
  if (one) {
    left += names_room(s.v, x);
    s.to.rect(left, top, wide, high, drawing::paper);
    for (const composed& c : all) draw_pieces(s, c, left, top);
    draw_elements(s, left, top);
    for (const held_alike& g : holders_of(s.v, x).groups)
      for (const area& a : areas_of(s.v, g.rows, g.columns)) {
        s.to.outline(left + a.x, top + a.y, a.w, a.h, drawing::ink, 1.6);
        if (a.h > 30 && a.w > drawing::chip_width(g.ranks[0]) + 3) s.to.chip(left + a.x + drawing::chip_width(g.ranks[0]) / 2 + 2, top + a.y + 10, g.ranks[0], s.colours.of(g.ranks[0]));
        else if (s.v.flat()) s.to.chip(left + a.x + a.w / 2, top + high + 12, g.ranks[0], s.colours.of(g.ranks[0]));
      }
    if (s.v.flat()) high += 20;
    draw_edges(s, x, left, top);
  } else if (s.v.flat()) {
    left += 34;
    top = y0 + 16;
    draw_edges(s, plan.source().of, left, top, false);
    double y = top;
    for (std::size_t i = 0; i < all.size() && i < 24; ++i, y += 22) {
      view lane = s.v;
      lane.rows.size = 18;
      s.to.rect(left, y, wide, 18, drawing::paper);
      draw_pieces({s.to, lane, s.colours}, all[i], left, y);
      s.to.chip(left - 20, y + 9, all[i].rank, s.colours.of(all[i].rank));
    }
    if (all.size() > 24) s.to.text(left, (y += 16) - 4, fmt::format("and {} more workers", all.size() - 24), 11, drawing::faint);
    high = y - top;
  } else {
    view small = s.v;
    const double scale = std::min({1.0, 150 / wide, 120 / high});
    small.columns.size *= scale;
    small.rows.size *= scale;
    const std::size_t across = all.size() <= 4 ? 2 : all.size() <= 9 ? 3 : 4, most = 16;
    const double step_x = std::max(small.columns.size, 60.0) + 18, step_y = small.rows.size + 36;
    top = y0 + 16;
    for (std::size_t i = 0; i < all.size() && i < most; ++i) {
      const double mx = left + step_x * static_cast<double>(i % across), my = top + 18 + step_y * static_cast<double>(i / across);
      s.to.rect(mx, my, small.columns.size, small.rows.size, drawing::paper);
      draw_pieces({s.to, small, s.colours}, all[i], mx, my);
      s.to.outline(mx, my, small.columns.size, small.rows.size, "#c3cad4", 1);
      s.to.chip(mx + drawing::chip_width(all[i].rank) / 2, my - 10, all[i].rank, s.colours.of(all[i].rank));
      s.to.text(mx + drawing::chip_width(all[i].rank) + 5, my - 6, move ? "gets" : "gives", 10, drawing::faint);
    }
    const std::size_t shown = std::min(all.size(), most);
    wide = step_x * static_cast<double>(std::min(shown, across)) - 18;
    high = step_y * static_cast<double>((shown + across - 1) / across) - 18;
    if (all.size() > most) s.to.text(left, top + (high += 18), fmt::format("and {} more workers", all.size() - most), 11, drawing::faint);
  }
  return {left, top, wide, high};
}

}  // namespace tessera::detail
