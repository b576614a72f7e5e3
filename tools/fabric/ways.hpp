#pragma once
// The changes of layout that the tools try: between any two ways for a tensor to lie along some axes of a mesh.

#include <tessera/plan/all_reduce_cost.hpp>
#include <tessera/plan/change.hpp>
#include <tessera/primitive/verb.hpp>

#include <iterator>
#include <string>
#include <vector>

namespace tessera::fabric {

using namespace engine;

/// A change of layout under its verb.
struct way {
  verb is = verb::nothing;
  std::string how;  ///< "from -> to"
  layout from;
  layout to;
};

/// How a tensor may lie along axes that are taken together.
enum class lying { replicate, partial, invariant, on_first, on_last, rows, columns, haloed, pending };
inline constexpr const char* lying_names[]{"replicate", "partial", "invariant",   "on the first", "on the last",
                                           "rows",      "columns", "haloed rows", "pending rows"};

/// A tensor of three dimensions that lies so along the axes in `along` (bit a: axis a); all other axes cut its second
/// one.
inline layout lying_along(const mesh_value& mesh, unsigned along, lying how, const index_t (&extents)[3]) {
  layout x;
  x.mesh = mesh;
  x.placements.resize(mesh.axes.count);
  for (const index_t n : extents) {
    dimension d;
    d.extent = n;
    x.dims.push(d);
  }
  for (int a = 0; a < mesh.axes.count; ++a) {
    if ((along >> a & 1u) == 0) {
      x.cut_by(1, a);
      continue;
    }
    switch (how) {
      case lying::replicate: x.set_placement(a, {placement::replicate}); break;
      case lying::partial: x.set_placement(a, {placement::partial}); break;
      case lying::invariant: x.set_placement(a, {placement::invariant}); break;
      case lying::on_first: x.set_placement(a, held_on(0)); break;
      case lying::on_last: x.set_placement(a, held_on(mesh.axes[a].extent - 1)); break;
      case lying::columns: x.cut_by(2, a); break;
      case lying::rows:
      case lying::haloed:
      case lying::pending: x.cut_by(0, a); break;
    }
  }
  if (how == lying::haloed || how == lying::pending) x = x.halo(0, sliding{3, 1, 1, 1, 1});
  return how == lying::pending ? cotangent(x) : x;
}

/// All that moves something, one for each pair of ways to lie that a change leads between.
inline std::vector<way> ways_along(const mesh_value& mesh, unsigned along, const index_t (&extents)[3]) {
  std::vector<way> all;
  constexpr int kinds = std::size(lying_names);
  for (int from = 0; from < kinds; ++from)
    for (int to = 0; to < kinds; ++to) {
      const layout x = lying_along(mesh, along, static_cast<lying>(from), extents);
      const layout y = lying_along(mesh, along, static_cast<lying>(to), extents);
      if (same(x, y) || !check_change(x, y).ok() || cost_between(x, y).total == 0) continue;
      all.push_back({verb_between(x, y), std::string(lying_names[from]) + " -> " + lying_names[to], x, y});
    }
  return all;
}

/// "row and col".
inline std::string names_of(const mesh_value& mesh, unsigned along) {
  std::string s;
  for (int a = 0; a < mesh.axes.count; ++a)
    if ((along >> a & 1u) != 0)
      s += (s.empty() ? "" : " and ") +
           std::string(mesh.axes[a].name.data, static_cast<std::size_t>(mesh.axes[a].name.size));
  return s;
}

}  // namespace tessera::fabric
