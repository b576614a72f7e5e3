#pragma once

#include <tessera/inspect/area.hpp>
#include <tessera/inspect/holders.hpp>
#include <tessera/inspect/messages.hpp>

#include <utility>

namespace tessera::detail {

/// "a 0 b 1": the coordinates that hold a part of a dimension, or "0 1"; empty where nothing cuts it.
inline std::string part_name(const parts& p, const layout& x, int k, bool axes = true) {
  coordinates c;
  c.resize(x.mesh.axes.count);
  p.locate(k, c);
  std::string s;
  for (int a : p.axes) {
    if (x.mesh.axes[a].extent == 1) continue;
    if (!s.empty()) s += ' ';
    s += axes ? fmt::format("{} {}", engine::chars_of(x.mesh.axes[a].name), c[a]) : fmt::format("{}", c[a]);
  }
  return s;
}

/// A picture that is being drawn: what all of its parts share.
struct sheet {
  drawing& to;
  const view& v;
  const palette& colours;
};

constexpr double tick_room = 18;

// How much room the names of parts take left of a map.
inline double names_room(const view& v, const layout& x) {
  if (v.flat()) return 0;
  const parts p(x, v.rows.dim);
  double w = 0;
  for (int k = 0; k < p.count() && k < 64; ++k) w = std::max(w, drawing::width_of(part_name(p, x, k), 11));
  return w + drawing::width_of(fmt::format("{}", v.rows.hi), 10) + 14;
}

/// The names of the parts and where they begin, along the upper and the left edge of a map at (x0, y0).
///
/// Names are short, or left out, where there is no room for all of them.
inline void draw_edges(const sheet& s, const layout& x, double x0, double y0, bool names = true) {
  for (const bool across : {true, false}) {
    const edge_view& e = across ? s.v.columns : s.v.rows;
    if (e.dim < 0) continue;
    const parts p(x, e.dim);
    double last = -99;
    const auto room = [&](index_t i) { return across ? 6 + drawing::width_of(fmt::format("{}", i), 10) : 11.0; };
    const auto tick = [&](index_t i) {
      const double at = e.at(i);
      if (at - last < room(i) || at > e.size + 0.1 || (i > 0 && i < e.hi && e.size - at < room(e.hi))) return;
      last = at;
      if (!e.known) return;
      if (across) s.to.text(x0 + at, y0 - 5, fmt::format("{}", i), 10, drawing::faint, "middle");
      else s.to.text(x0 - 6, y0 + at + 3.5, fmt::format("{}", i), 10, drawing::faint, "end");
    };
    const auto each_part = [&](const auto& visit) {
      for (const part_interval& one : intervals_in_order(p))
        if (one.held.lo < e.hi) visit(one.part, one.held.lo, e.at(one.held.lo), e.at(smaller(one.held.hi, e.hi)));
    };
    bool full = names, brief = names;
    each_part([&](int k, index_t, double from, double to) {
      full = full && to - from > (across ? drawing::width_of(part_name(p, x, k), 11) : 11.0);
      brief = brief && to - from > (across ? drawing::width_of(part_name(p, x, k, false), 11) : 11.0);
    });
    if (across && brief && !full) {
      std::string axes;
      for (int a : p.axes)
        if (x.mesh.axes[a].extent > 1)
          axes += (axes.empty() ? "" : " ") + std::string(engine::chars_of(x.mesh.axes[a].name));
      s.to.text(x0 - 6, y0 - tick_room, axes, 11, drawing::faint, "end");
    }
    each_part([&](int k, index_t begin, double from, double to) {
      if (x.dims[e.dim].kind == cover::tiled) tick(begin);
      if (!full && !brief) return;
      const std::string name = part_name(p, x, k, full);
      if (across) s.to.text(x0 + (from + to) / 2, y0 - tick_room, name, 11, drawing::ink, "middle");
      else
        s.to.text(x0 - 10 - drawing::width_of(fmt::format("{}", e.hi), 10), y0 + (from + to) / 2 + 4, name, 11,
                  drawing::ink, "end");
    });
    if (x.dims[e.dim].kind != cover::tiled) tick(0);
    tick(e.hi);
  }
}

/// A line between elements, where they are few.
inline void draw_elements(const sheet& s, double x0, double y0) {
  for (const bool across : {true, false}) {
    const edge_view& e = across ? s.v.columns : s.v.rows;
    if (e.dim < 0 || !e.known || e.size / static_cast<double>(e.hi - e.lo) < 9) continue;
    for (index_t i = e.lo + 1; i < e.hi; ++i) {
      if (across) s.to.line(x0 + e.at(i), y0, x0 + e.at(i), y0 + s.v.rows.size, "#00000016");
      else s.to.line(x0, y0 + e.at(i), x0 + s.v.columns.size, y0 + e.at(i), "#00000016");
    }
  }
}

// The sign between the chips of workers that hold terms of the same: how they are combined; none between copies.
inline const char* sign_of(const layout& x) {
  for (int a = 0; a < x.placements.count; ++a)
    if (x.placements[a].kind == placement::partial && x.mesh.axes[a].extent > 1)
      return combine_sign(x.placements[a].with);
  return "";
}

/// A map of who holds what, for parts that do not overlap: each in the colour of its first worker, with all workers'
/// numbers.
inline void draw_tiles(const sheet& s, const layout& x, const holders& held, double x0, double y0,
                       double opacity = 0.55) {
  s.to.rect(x0, y0, s.v.columns.size, s.v.rows.size, drawing::paper);
  for (const held_alike& g : held.groups)
    for (const area& a : areas_of(s.v, g.rows, g.columns))
      s.to.rect(x0 + a.x, y0 + a.y, a.w, a.h, s.colours.of(g.ranks[0]), opacity, "stroke='#ffffff' stroke-width='1.5'");
  draw_elements(s, x0, y0);
  for (const held_alike& g : held.groups)
    for (const area& a : areas_of(s.v, g.rows, g.columns))
      if (a.h > 15) s.to.chips(x0 + a.x + a.w / 2, y0 + a.y + a.h / 2, g.ranks, s.colours, a.w - 4, sign_of(x));
}

/// The elements of an interval list beyond another one.
inline std::vector<interval> beyond(const intervals& held, const intervals& own) {
  std::vector<interval> rest(held.begin(), held.end());
  for (const interval& mine : own) {
    std::vector<interval> left;
    for (const interval& i : rest)
      for (const interval& part : {interval{i.lo, smaller(i.hi, mine.lo)}, interval{larger(i.lo, mine.hi), i.hi}})
        if (!part.empty()) left.push_back(part);
    if (!mine.empty()) rest = left;
  }
  return rest;
}

/// Tiles as the same axes cut them without windows, and over them what the windows hold beyond: hatched in the reader's
/// colour.
inline void draw_halos(const sheet& s, const layout& x, double x0, double y0) {
  const layout tiles = without_windows(x);
  draw_tiles(s, tiles, holders_of(s.v, tiles), x0, y0, 0.35);
  const cutting own(tiles);
  for (const held_alike& g : holders_of(s.v, x).groups) {
    const holding h = own.held_by(g.ranks[0]);
    const intervals row = s.v.flat() ? one_row() : h[s.v.rows.dim], column = h[s.v.columns.dim];
    const std::string fill = s.to.hatch(s.colours.of(g.ranks[0]));
    const auto shade = [&](const interval& r, const interval& c) {
      if (const area a = area_of(s.v, r, c); a.w > 0) s.to.rect(x0 + a.x, y0 + a.y, a.w, a.h, fill);
    };
    for (const interval& r : beyond(g.rows, row))
      for (const interval& c : g.columns) shade(r, c);
    for (const interval& r : g.rows)
      for (const interval& c : beyond(g.columns, column))
        for (const interval& mine : row) shade(overlap(r, mine), c);
  }
}

/// One row of a picture for each worker that holds another part: who it is, and what of it.
inline void draw_lanes(const sheet& s, const layout& x, const holders& held, double x0, double y0) {
  const layout tiles = without_windows(x);
  const cutting own(tiles);
  double y = y0;
  for (std::size_t i = 0; i < held.groups.size() && i < 24; ++i, y += 22) {
    const held_alike& g = held.groups[i];
    const std::string colour = s.colours.of(g.ranks[0]);
    s.to.rect(x0, y, s.v.columns.size, 18, drawing::paper);
    const intervals mine = own.held_by(g.ranks[0])[s.v.columns.dim];
    for (const interval& c : g.columns) {
      const auto bar = [&](const interval& part, const std::string& fill, double opacity) {
        const area a = area_of(s.v, {0, 1}, part);
        if (a.w > 0) s.to.rect(x0 + a.x, y, a.w, 18, fill, opacity, "stroke='#ffffff' stroke-width='1'");
      };
      for (const interval& one : mine) bar(overlap(c, one), colour, 0.55);
    }
    for (const interval& c : beyond(g.columns, mine)) {
      const area a = area_of(s.v, {0, 1}, c);
      if (a.w > 0) s.to.rect(x0 + a.x, y, a.w, 18, s.to.hatch(colour), 1, "stroke='#ffffff' stroke-width='1'");
    }
    s.to.chips(x0 - 24, y + 9, g.ranks, s.colours, 44, sign_of(x));
  }
  if (held.groups.size() > 24)
    s.to.text(x0, y + 12, fmt::format("and {} more", held.groups.size() - 24), 11, drawing::faint);
}

/// Numbers of workers in a row: "3, 5, 7"; many are cut short.
inline std::string ranks_text(std::vector<int> ranks, std::size_t most = 12) {
  std::string s;
  std::sort(ranks.begin(), ranks.end());
  for (std::size_t i = 0; i < ranks.size() && i < most; ++i) s += fmt::format("{}{}", i == 0 ? "" : ", ", ranks[i]);
  return ranks.size() > most ? s + fmt::format(" and {} more", ranks.size() - most) : s;
}

/// Words for what a map cannot show: the mesh's place, the meaning of axes, workers without elements, omitted
/// dimensions.
inline std::vector<std::string> notes_of(const view& v, const layout& x, const holders& held) {
  std::vector<std::string> lines;
  const std::string where = world_ranks_text(x.mesh);
  lines.push_back(fmt::format("{} over {}{}{}", shape_text(x), text_of(x.mesh), where.empty() ? "" : ", ", where));
  lines.push_back(covers_text(x));
  for (int a = 0; a < x.placements.count; ++a) {
    const std::string terms = fmt::format("terms of a pending {}", combine_text(x.placements[a].with));
    const char* means[]{"equal copies, each used on its own", terms.c_str(), "equal copies, all used alike", "", ""};
    if (x.mesh.axes[a].extent == 1) continue;
    const std::string name(engine::chars_of(x.mesh.axes[a].name));
    if (x.placements[a].kind == placement::on)
      lines.push_back(fmt::format("{} = {} alone holds it", name, x.placements[a].coordinate));
    else if (x.placements[a].kind != placement::cut)
      lines.push_back(fmt::format("along {}: {} ({})", name, means[static_cast<int>(x.placements[a].kind)],
                                  placement_name(x.placements[a].kind)));
  }
  if (overlaps_drawn(v, x)) lines.push_back("hatched: what a window holds beyond the blocks of its axes");
  if (!held.idle.empty()) lines.push_back("holding nothing: " + ranks_text(held.idle));
  if (held.elsewhere.size() > 12)
    lines.push_back(fmt::format("{} workers hold only what is not drawn", held.elsewhere.size()));
  else if (!held.elsewhere.empty()) lines.push_back("holding only what is not drawn: " + ranks_text(held.elsewhere));
  if (const std::string s = hidden_text(v, x); !s.empty()) lines.push_back(s);
  return lines;
}

// Lines of at most `room` pixels, broken at spaces.
inline std::vector<std::string> wrapped(const std::vector<std::string>& lines, double room) {
  std::vector<std::string> all;
  for (const std::string& line : lines) {
    std::string now;
    for (std::size_t at = 0; at < line.size();) {
      const std::size_t end = std::min(line.find(' ', at), line.size());
      const std::string word = line.substr(at, end - at);
      if (!now.empty() && drawing::width_of(now + ' ' + word, 11) > room)
        all.push_back(std::exchange(now, "  " + word));
      else now += (now.empty() ? "" : " ") + word;
      at = end + 1;
    }
    all.push_back(now);
  }
  return all;
}

/// Writes notes below one another, the first one in ink: how far right and down they reach.
inline area draw_notes(drawing& to, const std::vector<std::string>& lines, double x, double y, double room) {
  area a{x, y, 0, 0};
  for (const std::string& line : wrapped(lines, room)) {
    to.text(x, y + a.h, line, 11, a.h == 0 ? drawing::ink : drawing::faint);
    a.w = std::max(a.w, drawing::width_of(line, 11));
    a.h += 15;
  }
  return a;
}

}  // namespace tessera::detail
