#pragma once

#include <tessera/topology/axis.hpp>
#include <tessera/topology/mesh_value.hpp>

namespace tessera {

/// The named axes of a mesh, in mesh order; an axis that the mesh lacks counts as extent 1, so it is left out.
template <class... Axes>
struct along {};

/// All axes of a mesh but the named ones, in mesh order.
template <class... Axes>
struct except {};

/// Places of axes in a mesh.
using group = static_vector<int, max_axes>;

namespace detail {

template <class G>
struct group_names {
  static constexpr bool is_group = false;
};
template <class... Axes>
struct group_names<along<Axes...>> {
  static constexpr bool is_group = true;
  static constexpr bool has(const text& axis) { return ((short_name_of<bare_axis<Axes>>() == axis) || ...); }
};
template <class... Axes>
struct group_names<except<Axes...>> {
  static constexpr bool is_group = true;
  static constexpr bool has(const text& axis) { return !((short_name_of<bare_axis<Axes>>() == axis) || ...); }
};

}  // namespace detail

/// The axes of a mesh that a group names: `group_in<along<a, b>>(mesh)`, `group_in<except<a>>(mesh)`.
template <class G>
  requires(detail::group_names<G>::is_group)
constexpr group group_in(const mesh_value& mesh) {
  group g;
  for (int a = 0; a < mesh.axes.count; ++a)
    if (detail::group_names<G>::has(mesh.axes[a].name)) g.push(a);
  return g;
}

/// The line through a worker along a group of axes: the sub-mesh with all other axes fixed at its coordinates.
constexpr mesh_value line_through(mesh_value mesh, const coordinates& at, const group& axes) {
  for (int a = mesh.axes.count - 1; a >= 0; --a) {
    bool kept = false;
    for (int g : axes) kept = kept || g == a;
    if (!kept) mesh = without_axis(mesh, a, at[a]);
  }
  return mesh;
}

}  // namespace tessera
