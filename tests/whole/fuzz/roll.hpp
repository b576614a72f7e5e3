#pragma once
// Cases of the fuzz, rolled: every kind of mesh, cover, window, boundary and placement.

#include "fuzz_case.hpp"
#include "oracle.hpp"
#include "tests/support/generate.hpp"

#include <tessera/topology/check_layout.hpp>

namespace tessera::testing::fuzz {

using namespace engine;

/// What is wrong with how the library takes the combines of a case: two ways in one layout are refused, and nothing
/// else for that.
inline std::string judge_combines(const fuzz_case& c) {
  for (const layout* x : {&c.from, &c.to}) {
    const bool refused = check(*x).is(code::mixed_combines);
    if (refused == one_combine(*x).has_value())
      return refused ? "one combine is refused as two" : "terms of two combines are accepted";
  }
  return {};
}

/// Whether a case means something: meshes, layouts and the change between them are accepted, and what becomes terms of
/// `any` or `all` is no sum, which may be more than a truth. One whose combines are judged wrongly is worth a look.
inline bool legal(const fuzz_case& c) {
  for (const layout* x : {&c.from, &c.to})
    if (!check(x->mesh).ok()) return false;
  if (!judge_combines(c).empty()) return true;
  if (!first_of(check(c.from), check(c.to), check_change(c.from, c.to)).ok()) return false;
  return !takes_truths(*one_combine(c.to)) || takes_truths(*one_combine(c.from)) || !has_terms(c.from);
}

/// How large cases become.
struct limits {
  int world = 30;
  int volume = 400;
};

/// A mesh with axes in any order of strides, also backwards.
inline mesh_value roll_any_mesh(dice& d) {
  mesh_value m = roll_mesh(d, d.once_in(4) ? 4 : 3);
  if (m.ranks == nullptr && d.once_in(6)) {
    axis_value& a = m.axes[d.roll(0, m.axes.count - 1)];
    m.first += a.stride * (a.extent - 1);
    a.stride = -a.stride;
  }
  return m;
}

/// A mesh that has something to do with another: the same, a part of it, its axes in another order or elsewhere, or
/// any.
inline mesh_value roll_second_mesh(dice& d, const mesh_value& first) {
  mesh_value m = first;
  const int a = d.roll(0, m.axes.count - 1);
  switch (d.roll(0, 9)) {
    case 0: return roll_any_mesh(d);
    case 1: return without_axis(m, a, d.roll(0, m.axes[a].extent - 1));
    case 2: std::swap(m.axes[a], m.axes[0]); return d.once_in(2) ? m : row_major(m, d.roll(0, 2));
    case 3: m.axes[a].extent = d.roll(1, m.axes[a].extent); return m;
    case 4: return row_major(m, d.roll(0, 2));
    default: return m;
  }
}

/// Any window that a layout may need a dimension by: slices, steps back and forth, divisors.
inline void roll_window(dice& d, layout& x, int dim) {
  layout y = x;
  dimension& k = y.dims[dim];
  k.balance(k.grain());
  k.kind = cover::haloed;
  k.needs = {d.roll(1, 3), d.roll(-4, 4), 0, d.roll(1, 3), 0, 0, static_cast<boundary>(d.roll(0, 3))};
  k.needs.b2 = k.needs.b + d.roll(0, 5);
  k.outputs = d.roll(0, static_cast<int>(2 * k.extent));
  if (d.once_in(4)) {  // a range of a longer dimension
    const int begin = d.roll(0, 3);
    k.needs = {1, -begin, -begin, 1};
    k.outputs = begin + k.extent + d.roll(0, 3);
  }
  if (const int taps = d.roll(1, 3); d.once_in(4) && k.extent % taps == 0) {  // end to end
    k.needs = {taps, 0, taps - 1, 1};
    k.outputs = k.extent / taps;
  }
  if (check(y).ok()) x = y;
}

inline layout roll_side(dice& d, const mesh_value& mesh, const static_vector<index_t, max_dimensions>& extents,
                        bool source) {
  layout x = roll_layout(d, mesh, extents, {true, true, true, true, true});
  for (int a = 0; a < x.placements.count; ++a)
    if (d.once_in(x.placements[a].kind == placement::cut ? 8 : 3)) x.set_placement(a, {});
  for (int k = 0; k < x.dims.count; ++k)
    if (x.levels(k) > 0 && d.once_in(8)) roll_window(d, x, k);
  for (dimension& k : x.dims)
    if (source && k.kind == cover::haloed && !(k.tiles() && d.once_in(2))) k.kind = cover::pending;
  return d.once_in(10) ? with_ones(d, x) : x;
}

/// Terms along all axes, or now and then along some, combine in another way; two ways are refused.
inline void combine_with(dice& d, layout& x, combine with) {
  const bool all = !d.once_in(3);
  for (axis_placement& r : x.placements)
    if (r.kind == placement::partial && (all || d.once_in(2))) r.with = with;
}

/// A case that means something; its lists are its own.
inline fuzz_case roll_case(dice& d, const limits& most, const std::vector<std::string>& elements) {
  while (true) {
    const auto extents = roll_extents(d, 4, d.once_in(3) ? 12 : d.once_in(8) ? 60 : 6);
    index_t volume = 1;
    for (index_t n : extents) volume *= n;
    // numbers and nothing are few cases
    if (volume > most.volume || ((extents.empty() || volume == 0) && !d.once_in(4))) continue;
    const mesh_value mesh = roll_any_mesh(d);
    fuzz_case c;
    c.from = roll_side(d, mesh, extents, true);
    c.to = roll_side(d, roll_second_mesh(d, mesh), extents, false);
    c.element = elements[static_cast<std::size_t>(d.roll(0, static_cast<int>(elements.size()) - 1))];
    const bool complex = c.element.rfind("complex", 0) == 0;  // they have no maximum
    if (!complex && d.once_in(6)) combine_with(d, c.from, static_cast<combine>(d.roll(1, 5)));
    if (!complex && d.once_in(6)) combine_with(d, c.to, static_cast<combine>(d.roll(1, 5)));
    c.memory = d.roll(0, 3);
    c.salt = d.next() % 1000000;
    if (!legal(c) || world_of(c) > most.world) continue;
    c.from = kept(c.from);
    c.to = kept(c.to);
    return c;
  }
}

}  // namespace tessera::testing::fuzz
