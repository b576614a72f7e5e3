#pragma once

#include <tessera/topology/axis.hpp>
#include <tessera/topology/mesh_value.hpp>

#include <concepts>
#include <type_traits>

namespace tessera {

/// Anything that names axes and says where their workers sit in the world.
template <class M>
concept Mesh = requires {
  { M::value } -> std::convertible_to<const mesh_value&>;
};

namespace detail {

template <class... Axes>
constexpr mesh_value mesh_of_axes() {
  mesh_value m;
  (m.axes.push({short_name_of<bare_axis<Axes>>(), Axes::axis_extent, 1}), ...);
  return row_major(m);
}

template <class M>
struct mesh_check {
  static constexpr refusal value = check(M::value);
};

}  // namespace detail

/// A Cartesian topology of workers: `mesh<row, col>` with row : axis<2> and col : axis<2> is a 2 x 2 grid.
///
/// Row-major from world rank 0 on, the last axis adjacent; `placed` and `fixed` say otherwise.
template <Axis... Axes>
struct mesh {
  static constexpr mesh_value value = detail::mesh_of_axes<Axes...>();
};

/// A mesh placed elsewhere in the world: world rank = First + Σ Stride·coordinate (row-major where no strides are given).
template <Mesh M, int First, int... Strides>
struct placed {
  static_assert(sizeof...(Strides) == 0 || static_cast<int>(sizeof...(Strides)) == M::value.axes.count,
                "[tessera.mesh.strides] a placement names one stride for each axis; add or remove strides");
  static constexpr mesh_value value = [] {
    mesh_value m = row_major(M::value, First);
    const int strides[]{Strides..., 0};
    if constexpr (sizeof...(Strides) > 0)
      for (int i = 0; i < m.axes.count; ++i) m.axes[i].stride = strides[i];
    return m;
  }();
};

/// The sub-mesh of `M` in which `A` is fixed at a coordinate: the workers of one line less.
template <Mesh M, class A, int Coordinate = 0>
struct fixed {
  static constexpr mesh_value value =
      without_axis(M::value, M::value.find(short_name_of<bare_axis<A>>()), Coordinate);
};

namespace detail {

template <class M>
struct axis_list;  // the axis types of a mesh, in order

template <class... Axes>
struct axes_are {};

template <class... Axes>
struct axis_list<mesh<Axes...>> {
  using type = axes_are<bare_axis<Axes>...>;
};
template <class M, int First, int... Strides>
struct axis_list<placed<M, First, Strides...>> : axis_list<M> {};

template <class Out, class A, class... Rest>
struct drop_axis {
  using type = Out;
};
template <class... Out, class A, class First, class... Rest>
struct drop_axis<axes_are<Out...>, A, First, Rest...>
    : std::conditional_t<std::is_same_v<A, First>, drop_axis<axes_are<Out...>, A, Rest...>,
                         drop_axis<axes_are<Out..., First>, A, Rest...>> {};
template <class List, class A>
struct drop_from;
template <class... Axes, class A>
struct drop_from<axes_are<Axes...>, A> : drop_axis<axes_are<>, A, Axes...> {};
template <class M, class A, int C>
struct axis_list<fixed<M, A, C>> : drop_from<typename axis_list<M>::type, bare_axis<A>> {};

}  // namespace detail
}  // namespace tessera
