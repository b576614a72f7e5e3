#pragma once

#include <tessera/plan/parts.hpp>

namespace tessera {

namespace engine {

/// The parts of every dimension of a layout: what the questions about its boxes start from.
struct cutting {
  layout of;
  static_vector<parts, max_dimensions> dims = no_items<parts, max_dimensions>;

  constexpr cutting() = default;
  constexpr explicit cutting(const layout& x) : of(x) {
    for (int d = 0; d < x.dims.count; ++d) dims.push(parts{x, d});
  }

  /// Whether coordinates hold anything at all: axes with a placement `on` name the coordinate that does.
  constexpr bool holds(const coordinates& c) const {
    for (int a = 0; a < of.placements.count; ++a)
      if (of.placements[a].kind == placement::on && of.placements[a].coordinate != c[a]) return false;
    return true;
  }

  /// Finds the coordinates of a world rank that holds a part; false for all others.
  constexpr bool locate(int rank, coordinates& c) const { return of.mesh.locate(rank, c) && holds(c); }

  /// The intervals that coordinates hold of a dimension.
  constexpr intervals held(int dim, const coordinates& c) const { return dims[dim].held(dims[dim].at(c)); }

  /// The intervals that a world rank holds, one list a dimension; empty lists when it holds nothing.
  constexpr holding held_by(int rank) const {
    holding h;
    coordinates c;
    const bool here = locate(rank, c);
    intervals nothing;
    nothing.push({});
    for (int d = 0; d < dims.count; ++d) h.push(here ? held(d, c) : nothing);
    return h;
  }

  /// The same as one box, for layouts in which no window runs around the end; refuses two intervals of a zigzag.
  constexpr box box_of(int rank) const {
    box b;
    for (const intervals& held : held_by(rank)) {
      if (held.count > 1 && dims[b.count].of.zigzag) stop(refusal{code::interval_wanted, b.count});
      b.push(held[0]);
    }
    return b;
  }

  /// The number of elements that a world rank holds.
  constexpr index_t elements_of(int rank) const {
    coordinates c;
    if (!locate(rank, c)) return 0;
    index_t n = 1;
    for (int d = 0; d < dims.count; ++d) n *= size_of(held(d, c));
    return n;
  }
};

/// The intervals that a world rank holds under a layout, in global indices.
constexpr holding held_by(const layout& x, int rank) { return cutting{x}.held_by(rank); }

}  // namespace engine

/// The box that a world rank holds under a layout in which every dimension is one interval, in global indices.
constexpr box box_of(const layout& x, int rank) { return engine::cutting{x}.box_of(rank); }

}  // namespace tessera
