#pragma once

#include <tessera/operation/plan/layer_plan.hpp>
#include <tessera/operation/plan/routing.hpp>
#include <tessera/plan/parts.hpp>
#include <tessera/topology/meeting.hpp>

namespace tessera::detail {

/// The axes that cut rows [row…, last], by dimension and from the outermost on.
constexpr static_vector<int, max_axes> row_axes(const layout& x) {
  static_vector<int, max_axes> all;
  for (int d = 0; d + 1 < x.dims.count; ++d)
    for (int level = 0; level < x.levels(d); ++level) all.push(x.cutter(d, level));
  return all;
}

/// How many rows there are, and how many the largest part of them has; dynamic where an extent is.
constexpr index_t rows_of(const layout& x) {
  index_t n = 1;
  for (int d = 0; d + 1 < x.dims.count; ++d)
    n = n == dynamic || x.dims[d].extent == dynamic ? dynamic : capped_product(n, x.dims[d].extent);
  return n;
}
constexpr index_t rows_of_largest_part(const layout& x) {
  index_t n = rows_of(x) == dynamic ? dynamic : 1;
  for (int d = 0; d + 1 < x.dims.count && n != dynamic; ++d) {
    n = capped_product(n, parts(x, d).largest());
  }
  return n;
}

/// Packed rows where they come from, [place, group, row, last]: groups are cut as the rows [row…, last] are, one a part
/// at least.
constexpr layout packed_by_source(const layout& x, index_t places, index_t groups, index_t rows) {
  const int last = x.dims.count - 1;
  layout y;
  y.mesh = x.mesh;
  for (index_t n : {places, groups, rows}) {
    dimension d;
    d.extent = n;
    y.dims.push(d);
  }
  y.dims.push(x.dims[last]);
  for (axis_placement r : x.placements) {
    const bool cuts_rows = r.kind == placement::cut && r.dimension != last;
    if (r.kind == placement::cut) r.dimension = 3;
    y.placements.push(cuts_rows ? axis_placement{} : r);
  }
  for (int a : row_axes(x)) y.cut_by(1, a);
  return y;
}

/// The same where the places are, which these axes cut; and the slots of their experts, [expert, group, slot, last].
constexpr layout packed_by_place(layout x, const static_vector<int, max_axes>& places) {
  for (int a : places) x.set_placement(a, {});
  for (int a : places) x.cut_by(0, a);
  return x;
}
constexpr layout slots_by_expert(layout packed, index_t experts, index_t slots) {
  packed.dims[0].extent = experts;
  packed.dims[2].extent = slots;
  return packed;
}

/// The axes that have several coordinates.
constexpr static_vector<int, max_axes> several_of(const mesh_value& mesh, const static_vector<int, max_axes>& axes) {
  static_vector<int, max_axes> all;
  for (int a : axes)
    if (mesh.axes[a].extent > 1) all.push(a);
  return all;
}

/// How many coordinates axes have together.
constexpr index_t coordinates_of(const mesh_value& mesh, const static_vector<int, max_axes>& axes) {
  index_t n = 1;
  for (int a : axes) n *= mesh.axes[a].extent;
  return n;
}

/// The groups of rows that fill slots apart, and the bins of each worker's rows that have slots.
struct routing_groups {
  index_t bins = 0;    ///< of all workers, as many of each; they are the groups where these lie whole on a worker
  index_t of_bin = 0;  ///< rows of the largest one
  index_t slots = 0;   ///< of an expert for it
  bool spans = false;  ///< groups lie on several workers, who see all choices
  refusal why = {};
};

/// Those of rows [row…, last] that lie in so many parts. Groups are balanced runs of all rows in order.
constexpr routing_groups routing_groups_of(const routing& layer, const layout& x, index_t parts) {
  routing_groups g;
  const index_t all = rows_of(x), largest = rows_of_largest_part(x);
  g.bins = layer.groups > 0 && layer.groups % parts == 0 ? layer.groups : parts;
  g.of_bin = all == dynamic ? dynamic : ceil_divide(largest, g.bins / parts);
  g.slots = all == dynamic || !layer.is_limited ? dynamic : layer.slots_for(g.of_bin);
  if (layer.groups == 0 || parts == 1 || !layer.is_limited) return g;
  for (int d = 0; d + 1 < x.dims.count; ++d)
    if (x.levels(d) > 0 && (d > 0 || !x.dims[0].in_order()))
      g.why = refusal{code::groups_of_rows_unalike, x.mesh.axes[x.cutter(d, 0)].name, d};
  if (all == dynamic || !g.why.ok()) return g;
  const bool even = layer.groups % parts == 0 && all % layer.groups == 0 && largest * parts == all;
  g.spans = !even;
  if (even) return g;
  const index_t least = all / layer.groups;  // rows of a group; so many groups have rows of a bin
  const index_t touching = least == 0 ? g.of_bin : smaller(g.of_bin, g.of_bin / least + 2);
  g.slots = smaller(g.of_bin, capped_product(layer.slots_for(ceil_divide(all, layer.groups)), touching));
  return g;
}

/// The first axis that cuts a dimension, for messages.
constexpr text cutter_name(const layout& x, int dim) {
  const int a = x.cutter(dim, 0);
  return a < 0 ? text() : x.mesh.axes[a].name;
}

/// Refuses rows that some worker has twice, terms, and a last dimension of the second operand that is cut.
constexpr refusal check_rows(const layout& x, int operand_number) {
  for (int a = 0; a < x.placements.count; ++a)
    if (x.placements[a].kind == placement::partial && x.mesh.axes[a].extent > 1)
      return refusal{code::nonlinear_on_partial, x.mesh.axes[a].name, operand_number};
  for (int d = 0; d < x.dims.count; ++d)
    if (!x.dims[d].tiles()) return refusal{code::haloed_summed, operand_number, d};
  return {};
}

/// Refuses rows [row…, last] of a second operand that do not lie as those of the first, or whose last dimension is cut.
constexpr refusal check_rows_alike(const layout& x, const layout& of, int operand_number) {
  const int last = x.dims.count - 1;
  if (of.dims.count != x.dims.count)
    return refusal{code::operand_of_other_dimensions, operand_number, x.dims.count, of.dims.count};
  if (of.part_count(last) > 1) return refusal{code::dimension_needed_whole, operand_number, last};
  for (int d = 0; d < last; ++d)
    if (of.dims[d].extent != x.dims[d].extent)
      return refusal{code::extents_differ, d, x.dims[d].extent, of.dims[d].extent};
  for (int a = 0; a < x.placements.count; ++a) {
    if (x.mesh.axes[a].extent == 1) continue;
    const axis_placement r = x.placements[a], s = of.placements[a];
    if ((r.kind == placement::on || s.kind == placement::on) && !(r == s))
      return refusal{code::held_on_one_coordinate, x.mesh.axes[a].name, operand_number};
    const bool first = r.kind == placement::cut && r.dimension < last;
    const bool second = s.kind == placement::cut;
    if (first != second || (first && !(r == s)))
      return refusal{code::cut_unalike, x.mesh.axes[a].name, operand_number, first ? r.dimension : s.dimension};
  }
  for (int d = 0; d < last; ++d)
    if (!same_intervals(x.dims[d], of.dims[d], x.part_count(d)))
      return refusal{code::cut_unalike, cutter_name(x, d), operand_number, d};
  return {};
}

}  // namespace tessera::detail
