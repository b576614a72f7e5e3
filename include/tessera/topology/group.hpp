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

namespace engine {

/// Places of axes in a mesh.
using group = static_vector<int, max_axes>;

}  // namespace engine

template <class... Axes>
inline constexpr kind engine::kind_of<along<Axes...>> = kind::group;
template <class... Axes>
inline constexpr kind engine::kind_of<except<Axes...>> = kind::group;

namespace detail {

template <class... Axes>
constexpr bool one_is(axes_are<Axes...>, const text& axis) {
  return ((short_name_of<bare_axis<Axes>>() == axis) || ...);
}

template <class G>
struct group_names {
  static constexpr refusal value = check_kinds<kind::call, kind::group, G>();
  static constexpr bool has(const text&) { return false; }
};
template <class... Axes>
struct group_names<along<Axes...>> : axes_check<kind::group, Axes...> {
  static constexpr bool has(const text& axis) {
    return one_is(typename all_factors<axes_are<>, Axes...>::type{}, axis);
  }
};
template <class... Axes>
struct group_names<except<Axes...>> : axes_check<kind::group, Axes...> {
  static constexpr bool has(const text& axis) {
    return !one_is(typename all_factors<axes_are<>, Axes...>::type{}, axis);
  }
};

}  // namespace detail

namespace engine {

/// The axes of a mesh that a group names: `group_in<along<a, b>>(mesh)`, `group_in<except<a>>(mesh)`.
template <class G>
constexpr group group_in(const mesh_value& mesh) {
  using verdict = verdict_of<detail::group_names<G>>;
  verdict::template refuse<verdict>();
  group g;
  for (int a = 0; a < mesh.axes.count; ++a)
    if (detail::group_names<G>::has(mesh.axes[a].name)) g.push(a);
  return g;
}

}  // namespace engine

/// The line through a worker along a group of axes: the sub-mesh with all other axes fixed at its coordinates.
constexpr mesh_value line_through(mesh_value mesh, const coordinates& at, const engine::group& axes) {
  for (int a = mesh.axes.count - 1; a >= 0; --a) {
    bool kept = false;
    for (int g : axes) kept = kept || g == a;
    if (!kept) mesh = engine::without_axis(mesh, a, at[a]);
  }
  return mesh;
}

/// The same for a group named by types: `line_through<along<a, b>>(mesh, at)`, `line_through<except<a>>(mesh, at)`.
template <class G>
constexpr mesh_value line_through(const mesh_value& mesh, const coordinates& at) {
  return line_through(mesh, at, engine::group_in<G>(mesh));
}

namespace detail {

// The coordinates `steps` further along axes that act as one, the last one fastest; false beyond the ends unless
// `ring`.
constexpr bool walk(const mesh_value& mesh, const group& axes, int steps, bool ring, coordinates& at) {
  index_t number = 0;
  index_t extent = 1;
  for (int a : axes) {
    number = number * mesh.axes[a].extent + at[a];
    extent *= mesh.axes[a].extent;
  }
  number += steps;
  if (ring) number = modulo(number, extent);
  if (number < 0 || number >= extent) return false;
  for (int i = axes.count - 1; i >= 0; --i) {
    at[axes[i]] = static_cast<int>(number % mesh.axes[axes[i]].extent);
    number /= mesh.axes[axes[i]].extent;
  }
  return true;
}

// The places of an axis, or of a product's factors in their order; an axis that the mesh lacks is left out.
template <class A>
constexpr group indices_of(const mesh_value& mesh) {
  group g;
  const auto add = [&](int a) {
    if (a >= 0) g.push(a);
  };
  [&]<class... Factors>(axes_are<Factors...>) {
    (add(mesh.find(short_name_of<bare_axis<Factors>>())), ...);
  }(typename factors<A>::type{});
  return g;
}

}  // namespace detail

namespace engine {

/// The coordinate of a worker along an axis, or its row-major number along the factors of a product; 0 where the mesh
/// lacks them.
template <class A>
constexpr int coordinate_along(const mesh_value& mesh, const coordinates& at) {
  using verdict = verdict_of<detail::axes_check<kind::call, A>>;
  verdict::template refuse<verdict>();
  int number = 0;
  for (int a : detail::indices_of<A>(mesh)) number = number * mesh.axes[a].extent + at[a];
  return number;
}

}  // namespace engine

/// The world rank of the worker `steps` further along an axis (or a product of axes), or -1 where the axis ends.
///
/// An axis that the mesh lacks counts as extent 1.
template <class A>
constexpr int neighbour(const mesh_value& mesh, coordinates at, int steps) {
  using verdict = engine::verdict_of<detail::axes_check<kind::call, A>>;
  verdict::template refuse<verdict>();
  return detail::walk(mesh, detail::indices_of<A>(mesh), steps, false, at) ? mesh.rank(at) : -1;
}

/// The same on a ring: after the last coordinate comes the first.
template <class A>
constexpr int neighbour_on_ring(const mesh_value& mesh, coordinates at, int steps) {
  using verdict = engine::verdict_of<detail::axes_check<kind::call, A>>;
  verdict::template refuse<verdict>();
  detail::walk(mesh, detail::indices_of<A>(mesh), steps, true, at);
  return mesh.rank(at);
}

}  // namespace tessera
