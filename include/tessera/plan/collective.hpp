#pragma once

#include <tessera/plan/cost_of.hpp>
#include <tessera/topology/meeting.hpp>

namespace tessera {

namespace engine {

/// The collective that a transfer is, by the field's name.
enum class collective : signed char {
  nothing,
  all_gather,
  reduce_scatter,
  all_to_all,
  broadcast,
  reduce,
  scatter,
  gather,
  neighbours,
  general
};

}  // namespace engine

namespace detail {

// Two coordinates of p lie beside each other or are the same; in a ring the first and the last do too.
constexpr bool beside(int i, int j, int p, bool ring) {
  const int apart = i < j ? j - i : i - j;
  return apart <= 1 || (ring && apart == p - 1);
}

// Every reader finds what it needs at its own coordinate and the two beside it.
constexpr bool only_neighbours(const transfer& plan) {
  for (int d = 0; d < plan.target().dims.count; ++d) {
    const parts& readers = plan.target().dims[d];
    const parts& tiles = plan.source().dims[d];
    if (readers.axes != tiles.axes) return false;
    const bool ring = readers.of.needs.edge == boundary::periodic || readers.of.turned != tiles.of.turned;
    for (int k = 0; k < readers.count(); ++k)
      for (const interval& wanted : readers.held(k))
        for (const auto& near : tiles.touching(wanted))
          for (int j = near.first; j < near.last; ++j)
            for (const interval& tile : tiles.held(j))
              if (!overlap(wanted, tile).empty() && !beside(readers.number(k), tiles.number(j), readers.count(), ring))
                return false;
  }
  return true;
}

}  // namespace detail

namespace engine {

/// Recognises what a transfer is, so that a transport can use its best method.
constexpr collective collective_of(const transfer& given) {
  if (cost_of(given).total == 0) return collective::nothing;
  // axes of extent 1 do not change what it is
  const auto bare = [](const layout& x) { return over(x, without_ones(x.mesh)); };
  const layout source = bare(given.source().of);
  const layout target = bare(given.target().of);
  const bool folds = given.kind() == map::fold;
  const transfer plan{given.kind(), folds ? cotangent(target) : source, folds ? cotangent(source) : target};
  if (!plan.aligned()) return collective::general;
  const layout& from = plan.source().of;
  const layout& to = plan.target().of;
  bool gathered = false;
  bool exchanged = false;
  bool spread = false;
  bool scattered = false;
  bool collected = false;
  for (int a = 0; a < from.placements.count; ++a) {
    const axis_placement& s = from.placements[a];
    const axis_placement& t = to.placements[a];
    const bool copies =
        t.kind == placement::replicate || t.kind == placement::invariant || t.kind == placement::partial;
    if (s.kind == placement::cut && copies) gathered = true;
    if (s.kind == placement::cut && t.kind == placement::cut && (s.dimension != t.dimension || s.level != t.level))
      exchanged = true;
    if (s.kind == placement::on && copies) spread = true;
    if (s.kind == placement::on && t.kind == placement::cut) scattered = true;
    if (s.kind == placement::cut && t.kind == placement::on) collected = true;
  }
  bool haloed = false;
  for (const auto& d : to.dims) haloed = haloed || !d.tiles();
  const int kinds = gathered + exchanged + spread + scattered + collected + haloed;
  if (kinds > 1) return collective::general;
  if (haloed || kinds == 0) return detail::only_neighbours(plan) ? collective::neighbours : collective::general;
  if (gathered) return folds ? collective::reduce_scatter : collective::all_gather;
  if (spread) return folds ? collective::reduce : collective::broadcast;
  if (scattered) return folds ? collective::gather : collective::scatter;
  if (collected) return folds ? collective::scatter : collective::gather;
  return collective::all_to_all;
}

/// The name of a collective.
constexpr const char* name_of(engine::collective c) {
  switch (c) {
    case engine::collective::nothing: return "nothing";
    case engine::collective::all_gather: return "all_gather";
    case engine::collective::reduce_scatter: return "reduce_scatter";
    case engine::collective::all_to_all: return "all_to_all";
    case engine::collective::broadcast: return "broadcast";
    case engine::collective::reduce: return "reduce";
    case engine::collective::scatter: return "scatter";
    case engine::collective::gather: return "gather";
    case engine::collective::neighbours: return "neighbours";
    case engine::collective::general: return "general";
  }
  return "";
}

}  // namespace engine

}  // namespace tessera
