#pragma once

#include <tessera/inspect/draw_layout.hpp>

namespace tessera {

namespace detail {

// A layout at (x0, y0), with the names of its parts and notes on `given`, which it was made drawable from: where it
// ends.
inline area draw_layout(const sheet& s, const layout& x, const layout& given, double x0, double y0) {
  const holders held = holders_of(s.v, x);
  const bool lanes = s.v.flat() && overlaps_drawn(s.v, x);
  const double left = x0 + (lanes ? 50 : names_room(s.v, x));
  const double top = y0 + 32;
  double height = s.v.rows.size;
  if (lanes) {
    draw_lanes(s, x, held, left, top);
    height = 22.0 * static_cast<double>(std::min<std::size_t>(held.groups.size() + 1, 25)) - 22;
  } else if (overlaps_drawn(s.v, x)) {
    draw_halos(s, x, left, top);
  } else {
    draw_tiles(s, x, held, left, top);
  }
  draw_edges(s, without_windows(x), left, top);
  const area notes =
      draw_notes(s.to, notes_of(s.v, given, held), left, top + height + 20, std::max(360.0, s.v.columns.size));
  return {left, top, std::max(s.v.columns.size, notes.w), height + 20 + notes.h};
}

}  // namespace detail

/// A layout as SVG, with the workers that hold each element: at most two dimensions are drawn, the others named.
///
/// Tiles carry the numbers of all workers that hold them; a window's halo is hatched in its reader's colour over the
/// owner's tile.
inline std::string svg_of(const layout& given) {
  const layout x = engine::drawable(given);
  const engine::view v = engine::choose_view({&given}, detail::windowed(x), 360, 280, 10);
  engine::drawing to;
  const engine::palette colours(engine::ranks_of(x.mesh));
  detail::draw_layout({to, v, colours}, x, given, 16, 8);
  return to.str();
}

}  // namespace tessera
