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

template <class A, class B>
struct join_axes;
template <class... A, class... B>
struct join_axes<axes_are<A...>, axes_are<B...>> {
  using type = axes_are<A..., B...>;
};

// The axes of a mesh in order, products replaced by their factors.
template <class Done, class... Axes>
struct all_factors {
  using type = Done;
};
template <class Done, class First, class... Rest>
struct all_factors<Done, First, Rest...> : all_factors<typename join_axes<Done, typename factors<First>::type>::type, Rest...> {};

template <class... Axes>
constexpr int count_of(axes_are<Axes...>) {
  return sizeof...(Axes);
}

template <class... Axes>
constexpr mesh_value mesh_of(axes_are<Axes...>) {
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
  static constexpr mesh_value value = detail::mesh_of(typename detail::all_factors<detail::axes_are<>, Axes...>::type{});
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

/// A mesh on an arbitrary list of workers: the coordinate with row-major number k sits on the k-th rank.
template <Mesh M, int... Ranks>
struct on_ranks {
  static constexpr int given = sizeof...(Ranks);
  static constexpr static_vector<int, (given > M::value.size() ? given : M::value.size())> ranks{{Ranks...}, given};
  static constexpr mesh_value value = row_major(M::value, 0, ranks.items);
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
  static constexpr int axes = count_of(typename all_factors<axes_are<>, Axes...>::type{});
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
template <class M, int... Ranks>
struct mesh_check<on_ranks<M, Ranks...>> {
  static constexpr int ranks = sizeof...(Ranks);
  static constexpr int workers = M::value.size();
  static constexpr refusal value = first_of(
      mesh_check<M>::value, ranks == workers ? refusal{} : refusal{code::wrong_number_of_ranks, workers, ranks},
      ranks == workers ? check(on_ranks<M, Ranks...>::value) : refusal{});
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
axes_are<bare_axis<Axes>...> bare_axes(axes_are<Axes...>);
template <class... Axes>
struct axis_list<mesh<Axes...>> {
  using type = decltype(bare_axes(typename all_factors<axes_are<>, Axes...>::type{}));
};
template <class M, int... Ranks>
struct axis_list<on_ranks<M, Ranks...>> : axis_list<M> {};
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
