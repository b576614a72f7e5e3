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
  if constexpr (sizeof...(Axes) <= max_axes) (m.axes.push({short_name_of<bare_axis<Axes>>(), Axes::axis_extent, 1}), ...);
  return row_major(m);
}

// Whether a mesh can be used; partitions ask, so that a mesh which does not fit still has a value and is refused once.
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
  static constexpr mesh_value value = [] {
    mesh_value m = row_major(M::value, First);
    [[maybe_unused]] const int strides[]{Strides..., 0};
    if constexpr (static_cast<int>(sizeof...(Strides)) == M::value.axes.count)
      for (int i = 0; i < m.axes.count; ++i) m.axes[i].stride = strides[i];
    return m;
  }();
};

/// The sub-mesh of `M` in which `A` is fixed at a coordinate: the workers of one line less.
template <Mesh M, class A, int Coordinate = 0>
struct fixed {
  static constexpr int axis = M::value.find(short_name_of<bare_axis<A>>());
  static constexpr mesh_value value = axis < 0 ? M::value : without_axis(M::value, axis, Coordinate);
};

namespace detail {

template <class... Axes>
struct mesh_check<mesh<Axes...>> {
  static constexpr int axes = sizeof...(Axes);
  static constexpr refusal value =
      axes > max_axes ? refusal{code::too_many, axes, 0} : check(mesh<Axes...>::value);
};
template <class M, int First, int... Strides>
struct mesh_check<placed<M, First, Strides...>> {
  static constexpr int strides = sizeof...(Strides);
  static constexpr int axes = M::value.axes.count;
  static constexpr refusal value = first_of(
      mesh_check<M>::value,
      strides == 0 || strides == axes ? refusal{} : refusal{code::wrong_number_of_strides, axes, strides},
      check(placed<M, First, Strides...>::value));
};
template <class M, class A, int C>
struct mesh_check<fixed<M, A, C>> {
  static constexpr refusal value = [] {
    constexpr int a = fixed<M, A, C>::axis;
    const auto& axes = M::value.axes;
    if (!mesh_check<M>::value.ok()) return mesh_check<M>::value;
    if (a < 0) return refusal{code::axis_not_in_mesh, 0, axes.count};
    if (C < 0 || C >= axes[a].extent) return refusal{code::coordinate_outside_axis, a, axes[a].extent, C};
    return refusal{};
  }();
};

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
