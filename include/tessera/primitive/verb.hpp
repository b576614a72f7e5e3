#pragma once

#include <tessera/plan/change.hpp>
#include <tessera/topology/meeting.hpp>
#include <tessera/topology/tensor_type.hpp>

#include <initializer_list>

namespace tessera {

/// The field's name of a change of layout. Beside each its adjoint.
enum class verb : signed char {
  nothing,          ///< nothing
  broadcast,        ///< O → R: sum_reduce.  O → I: to_root
  sum_reduce,       ///< P → O: broadcast
  all_reduce,       ///< P → R: all_reduce.  P → I: copy_in
  all_gather,       ///< V → R: reduce_scatter.  V → I: shard
  reduce_scatter,   ///< P → V: all_gather
  scatter,          ///< O → V: gather
  gather,           ///< V → O: scatter
  all_to_all,       ///< V → V, from one dimension to another: all_to_all
  repartition,      ///< tiling → tiling: repartition
  halo_exchange,    ///< blocks → haloed: halo_accumulate
  halo_accumulate,  ///< pending → blocks: halo_exchange
  copy_in,          ///< I → R: all_reduce
  shard,            ///< R → V: to_partial.  I → V: all_gather
  to_invariant,     ///< R → I: to_partial
  to_root,          ///< R → O: to_partial.  I → O: broadcast
  to_partial,       ///< R → P: to_partial.  I → P: to_invariant.  O → P: to_root.  V → P: shard
  several           ///< a product of different verbs over axes
};

namespace engine {

constexpr const char* name_of(verb v) {
  constexpr const char* names[]{"nothing",        "broadcast",       "sum_reduce", "all_reduce", "all_gather",
                                "reduce_scatter", "scatter",         "gather",     "all_to_all", "repartition",
                                "halo_exchange",  "halo_accumulate", "copy_in",    "shard",      "to_invariant",
                                "to_root",        "to_partial",      "several"};
  return names[static_cast<int>(v)];
}

}  // namespace engine

namespace detail {

// The verb of one axis: the closed table of changes of placement.
constexpr verb verb_of_axis(placement from, placement to) {
  constexpr verb n = verb::nothing;
  // rows: replicate partial invariant on cut
  constexpr verb table[5][5]{
      {n, verb::to_partial, verb::to_invariant, verb::to_root, verb::shard},
      {verb::all_reduce, n, verb::all_reduce, verb::sum_reduce, verb::reduce_scatter},
      {verb::copy_in, verb::to_partial, n, verb::to_root, verb::shard},
      {verb::broadcast, verb::to_partial, verb::broadcast, n, verb::scatter},
      {verb::all_gather, verb::to_partial, verb::all_gather, verb::gather, n},
  };
  return table[static_cast<int>(from)][static_cast<int>(to)];
}

// An axis that goes on cutting its dimension cuts other parts when the axes outside it, the grain or the lengths
// change.
constexpr bool parts_move(const layout& from, const layout& to) {
  for (int d = 0; d < from.dims.count; ++d) {
    const dimension& s = from.dims[d];
    const dimension& t = to.dims[d];
    const bool tiles = s.tiles() && t.tiles();
    const bool listed = s.bounds != nullptr || t.bounds != nullptr;
    bool alike =
        !tiles || ((!listed || from.part_count(d) == to.part_count(d)) && same_intervals(s, t, from.part_count(d)));
    const auto joins = [d](const layout& x, int level) {
      const int a = x.cutter(d, level);
      return a >= 0 && x.placements[a].joined;
    };
    for (int level = 0; level < from.levels(d); ++level) {
      const int a = from.cutter(d, level);
      alike = alike && to.cutter(d, level) == a && joins(from, level + 1) == joins(to, level + 1);
      if (!alike && to.placements[a].kind == placement::cut && to.placements[a].dimension == d) return true;
    }
  }
  return false;
}

// The verb between layouts over one mesh whose axes of extent 1 cut nothing.
constexpr verb verb_on_one_mesh(const layout& from, const layout& to) {
  bool haloed = false;
  for (const dimension& d : to.dims) haloed = haloed || !d.tiles();
  if (parts_move(from, to)) return moves(from, to) && !haloed ? verb::repartition : verb::several;
  verb found = verb::nothing;
  const auto add = [&](verb v) {
    const auto permutes = [](verb w) { return w == verb::all_to_all || w == verb::repartition; };
    if (v == verb::nothing || found == v) return;
    found = found == verb::nothing ? v : permutes(found) && permutes(v) ? verb::repartition : verb::several;
  };
  for (int a = 0; a < from.placements.count; ++a) {
    if (from.mesh.axes[a].extent == 1) continue;
    const axis_placement& s = from.placements[a];
    const axis_placement& t = to.placements[a];
    if (s.kind == placement::cut && t.kind == placement::cut) {
      if (s.dimension != t.dimension) add(verb::all_to_all);
    } else if (s.kind == placement::on && t.kind == placement::on) {
      if (s.coordinate != t.coordinate) add(verb::repartition);
    } else {
      add(verb_of_axis(s.kind, t.kind));
    }
  }
  for (int d = 0; d < from.dims.count; ++d) {
    if (from.dims[d].tiles() && !to.dims[d].tiles()) add(verb::halo_exchange);
    if (!from.dims[d].tiles() && to.dims[d].tiles()) add(verb::halo_accumulate);
  }
  return found == verb::nothing ? verb::repartition : found;
}

}  // namespace detail

namespace engine {

/// Names the change from one layout to another; axes of extent 1 make no difference.
///
/// With several axes on a dimension only the innermost change alone: `blocks<a, b>` → `blocks<a>` is an all_gather, but
/// `blocks<a, b>` → `blocks<b>` moves what b holds too, a repartition.
constexpr verb verb_between(const layout& from, const layout& to) {
  if (same(from, to)) return verb::nothing;
  if (!meet(from.mesh, to.mesh)) return detail::moves(from, to) ? verb::repartition : verb::several;
  return detail::verb_on_one_mesh(over(from, from.mesh), over(to, from.mesh));
}

}  // namespace engine

namespace detail {

// The name of the change from one layout to another, where axes of extent 1 count as longer ones. A program templated
// over meshes can thus name what it does.
constexpr verb verb_of_longer_axes(layout from, layout to) {
  if (!meet(from.mesh, to.mesh)) return verb::several;
  for (layout* x : {&from, &to}) {
    for (axis_value& a : x->mesh.axes)
      if (a.extent == 1) a.extent = 2;
    x->mesh = row_major(x->mesh);
    for (dimension& d : x->dims) d.balance(d.grain());
  }
  return verb_between(from, to);
}

}  // namespace detail
}  // namespace tessera
