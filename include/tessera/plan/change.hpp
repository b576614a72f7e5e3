#pragma once

#include <tessera/generated/plan.hpp>
#include <tessera/plan/collective.hpp>
#include <tessera/topology/meeting.hpp>

#include <initializer_list>

namespace tessera {

namespace engine {

/// One Move or Fold of a change.
struct step {
  map kind = map::move;
  layout from;
  layout to;
  combine with = combine::sum;

  constexpr transfer plan() const { return {kind, from, to}; }
};

}  // namespace engine

/// A change of layout as a product of transfers: Fold what is partial, Move, Fold into what becomes partial, Move to
/// its halo. Most changes are one of them.
///
/// Its adjoint is the change from to* to from*.
struct change {
  static_vector<engine::step, 4> steps = engine::no_items<engine::step, 4>;
};

namespace detail {

// The placement that an axis of `x` named like axis a of `of` has; a mesh that lacks the axis counts as extent 1.
constexpr axis_placement twin_role(const layout& x, const layout& of, int a) {
  const int b = x.mesh.find(of.mesh.axes[a].name);
  return b < 0 || x.mesh.axes[b].extent != of.mesh.axes[a].extent ? held_on(0) : x.placements[b];
}

// Terms along an axis stay terms only on the same mesh, and only of the same combine.
constexpr bool ends(const layout& from, const layout& to, int axis) {
  return !(from.mesh == to.mesh) || to.placements[axis].kind != placement::partial ||
         to.placements[axis].with != from.placements[axis].with;
}

// An axis along which terms of `from` are pending that `to` does not have.
constexpr bool ends_terms(const layout& from, const layout& to, int axis) {
  return from.placements[axis].kind == placement::partial && from.mesh.axes[axis].extent > 1 && ends(from, to, axis);
}

// One Move does it: no term has to be added and none has to be made.
constexpr bool moves(const layout& from, const layout& to) {
  for (const auto& d : from.dims)
    if (!d.tiles()) return false;
  for (const auto& d : to.dims)
    if (d.kind == cover::pending && !d.tiles()) return false;
  for (int a = 0; a < from.placements.count; ++a)
    if (ends_terms(from, to, a)) return false;
  for (int a = 0; a < to.placements.count; ++a)
    if (ends_terms(to, from, a)) return false;
  return true;
}

// How the terms that end combine, and those that begin: a layout's terms all combine in one way.
constexpr combine combine_of_ended(const layout& from, const layout& to) {
  for (int a = 0; a < from.placements.count; ++a)
    if (ends_terms(from, to, a)) return from.placements[a].with;
  return combine::sum;
}
constexpr combine combine_of_begun(const layout& from, const layout& to) { return combine_of_ended(to, from); }

// Whether terms of `from` are added up at all, those of a window among them.
constexpr bool some_end(const layout& from, const layout& to) {
  bool some = false;
  for (const auto& d : from.dims) some = some || d.kind == cover::pending;
  for (int a = 0; a < from.placements.count; ++a) some = some || ends_terms(from, to, a);
  return some;
}

// One Fold does it: backwards it is one Move, what all use alike stays so, and terms end and begin in one way.
constexpr bool folds(const layout& from, const layout& to) {
  if (!moves(cotangent(to), cotangent(from))) return false;
  if (some_end(from, to) && some_end(to, from) && combine_of_ended(from, to) != combine_of_begun(from, to))
    return false;
  const bool aligned = from.mesh == to.mesh;
  for (const layout* x : {&from, &to})
    for (int a = 0; a < x->placements.count; ++a) {
      if (x->placements[a].kind != placement::invariant || x->mesh.axes[a].extent == 1) continue;
      if (!aligned || from.placements[a].kind != placement::invariant || to.placements[a].kind != placement::invariant)
        return false;
    }
  return true;
}

// The largest part over the whole where `now` elements are cut once more; 2 where they cannot be.
constexpr double largest_over_whole(index_t now, index_t parts_more) {
  return now < 2 ? 2 : static_cast<double>((now - 1) / parts_more + 1) / static_cast<double>(now);
}

// The dimension that `parts_more` further parts share most evenly; -1 where none can be cut. Of several the outermost
// is taken, so that parts are one piece of memory where possible.
constexpr int most_even(const layout& x, int parts_more) {
  int best = -1;
  double least = 2;
  for (int d = 0; d < x.dims.count; ++d) {
    if (x.dims[d].kind != cover::tiled || !x.dims[d].in_order()) continue;
    const index_t grain = x.levels(d) == 0 ? 1 : x.dims[d].grain();
    const index_t now = x.dims[d].extent == dynamic ? INT64_MAX : x.dims[d].extent / grain / parts{x, d}.count();
    if (const double largest = largest_over_whole(now, parts_more); largest < least) {
      least = largest;
      best = d;
    }
  }
  return best;
}

// Lets one more axis cut the most even dimension; a tensor too small to cut goes to coordinate 0.
constexpr void spread(layout& x, int axis) {
  x.placements[axis] = {};
  const int d = most_even(x, x.mesh.axes[axis].extent);
  if (d < 0) {
    x.placements[axis] = held_on(0);
    return;
  }
  if (x.levels(d) == 0) x.dims[d].set_grain(1);
  x.cut_by(d, axis);
}

// Cuts a dimension by one more axis, in the grain of `like` where it is the first.
constexpr void cut_as(layout& x, int dim, int axis, const dimension& like) {
  if (x.levels(dim) == 0) x.dims[dim].set_grain(like.grain());
  x.cut_by(dim, axis);
}

// Where the same axes cut a dimension in the same order in both, deals it as `like` does.
constexpr void deal_as(layout& x, const layout& like) {
  for (int d = 0; d < x.dims.count; ++d) {
    dimension& dim = x.dims[d];
    const dimension& wanted = like.dims[d];
    if (dim.kind != cover::tiled || wanted.kind != cover::tiled || x.levels(d) != like.levels(d)) continue;
    bool alike = x.levels(d) > 0;
    for (int l = 0; alike && l < x.levels(d); ++l) {
      const axis_value& mine = x.mesh.axes[x.cutter(d, l)];
      const axis_value& theirs = like.mesh.axes[like.cutter(d, l)];
      alike = mine.name == theirs.name && mine.extent == theirs.extent;
    }
    if (!alike) continue;
    dim.set_grain(wanted.grain());
    dim.deal_as(wanted);
    for (int l = 0; l < x.levels(d); ++l)
      x.placements[x.cutter(d, l)].joined = like.placements[like.cutter(d, l)].joined;
  }
}

// `from` with every pending combine done: each term is owned by one worker, where `to` wants it if it can be.
constexpr layout folded(const layout& from, const layout& to) {
  layout mid = from;
  for (int d = 0; d < mid.dims.count; ++d) {
    if (mid.dims[d].kind != cover::pending) continue;
    mid.dims[d].tile();
    mid.dims[d].balance(to.dims[d].grain());
  }
  static_vector<int, max_axes> open;
  for (int a = 0; a < from.placements.count; ++a)
    if (from.placements[a].kind == placement::partial && ends(from, to, a)) open.push(a);
  for (int a : open) mid.placements[a] = {};
  for (int level = 0; level < max_axes; ++level)
    for (int a : open) {
      const axis_placement wanted = twin_role(to, from, a);
      if (wanted.kind == placement::cut && wanted.level == level)
        cut_as(mid, wanted.dimension, a, to.dims[wanted.dimension]);
    }
  for (int a : open) {
    const axis_placement wanted = twin_role(to, from, a);
    if (wanted.kind == placement::cut) continue;
    if (wanted.kind == placement::on) mid.placements[a] = wanted;
    else spread(mid, a);
  }
  deal_as(mid, to);
  return mid;
}

// `to` before terms are made: each axis that becomes partial still holds every element once.
constexpr layout unspread(const layout& from, const layout& to) {
  layout mid = to;
  for (int a = 0; a < to.placements.count; ++a) {
    if (to.placements[a].kind != placement::partial) continue;
    const axis_placement was = twin_role(from, to, a);
    if (was.kind == placement::partial && was.with == to.placements[a].with) continue;
    if (was.kind == placement::cut && was.dimension < to.dims.count && mid.dims[was.dimension].kind == cover::tiled) {
      mid.placements[a] = {};
      cut_as(mid, was.dimension, a, from.dims[was.dimension]);
    } else {
      mid.placements[a] = held_on(was.kind == placement::on ? was.coordinate : 0);
    }
  }
  return mid;
}

// Every dimension cut as its windows cut it, but holding each element once.
constexpr layout without_windows(layout x) {
  for (int d = 0; d < x.dims.count; ++d) {
    if (x.dims[d].kind == cover::tiled) continue;
    dimension tiles = x.dims[d];
    tiles.tile();
    tiles.balance(1);
    x.dims[d] = tiles;
  }
  return x;
}

// Terms that are made must not start from copies, so a halo of new terms is exchanged after they are made.
constexpr bool makes_haloed_terms(const layout& from, const layout& to) {
  bool haloed = false;
  bool terms = false;
  for (int d = 0; d < to.dims.count; ++d) haloed = haloed || !to.dims[d].tiles();
  for (int a = 0; a < to.placements.count; ++a) terms = terms || ends_terms(to, from, a);
  return haloed && terms;
}

}  // namespace detail

/// Plans a change of layout; both layouts have the same extents.
///
/// Partial axes come first, so that what is moved afterwards is already summed.
constexpr change change_between(const layout& from, const layout& to) {
  change c;
  if (engine::same(from, to)) return c;
  const bool aligned = from.mesh == to.mesh;
  const bool meets = aligned || engine::meet(from.mesh, to.mesh);
  if (!engine::ones_idle(from) || !engine::ones_idle(to) || meets != aligned)
    return change_between(engine::over(from, from.mesh), engine::over(to, meets ? from.mesh : to.mesh));
  const combine with = detail::combine_of_ended(from, to);
  if (detail::moves(from, to)) {
    c.steps.push({engine::map::move, from, to, combine::sum});
    return c;
  }
  if (detail::folds(from, to)) {
    c.steps.push({engine::map::fold, from, to, with != combine::sum ? with : detail::combine_of_begun(from, to)});
    return c;
  }
  if (detail::makes_haloed_terms(from, to)) {
    const layout tiles = detail::without_windows(to);
    change both = change_between(from, tiles);
    both.steps.push({engine::map::move, tiles, to});
    return both;
  }
  const layout one = detail::folded(from, to);
  const layout two = detail::unspread(one, to);
  if (!engine::same(from, one)) c.steps.push({engine::map::fold, from, one, with});
  if (!engine::same(one, two)) c.steps.push({engine::map::move, one, two});
  if (!engine::same(two, to)) c.steps.push({engine::map::fold, two, to, detail::combine_of_begun(from, to)});
  return c;
}

namespace engine {

/// Refuses a change between tensors of different extents, and a start from haloed copies. It refuses a zigzag beside a
/// window that runs around the end: two workers would carry their boxes in two orders.
constexpr refusal check_change(const layout& from, const layout& to) {
  if (from.dims.count != to.dims.count) return refusal{code::ranks_differ, from.dims.count, to.dims.count};
  for (int d = 0; d < from.dims.count; ++d) {
    if (from.dims[d].extent != to.dims[d].extent)
      return refusal{code::extents_differ, d, from.dims[d].extent, to.dims[d].extent};
    if (from.dims[d].kind == cover::haloed && !from.dims[d].tiles() && !same(from, to))
      return refusal{code::not_a_tiling, text(), d};
    if (to.dims[d].kind == cover::pending && !to.dims[d].tiles() && !same(from, to))
      return refusal{code::not_a_tiling, text(), d};
    const auto goes_around = [d](const layout& x) {
      return x.dims[d].kind != cover::tiled && x.dims[d].needs.edge == boundary::periodic;
    };
    if ((from.dims[d].zigzag && goes_around(to)) || (to.dims[d].zigzag && goes_around(from)))
      return refusal{code::interval_wanted, d};
  }
  return {};
}

}  // namespace engine

}  // namespace tessera
