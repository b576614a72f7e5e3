#pragma once

#include <tessera/topology/mesh_value.hpp>
#include <tessera/topology/named_axes.hpp>

#include <type_traits>

namespace tessera {

template <class... Axes>
struct mesh;
template <class M, int First, int... Strides>
struct placed;
template <class M, int... Ranks>
struct on_ranks;
template <class M, class A, int Coordinate>
struct fixed;

template <class... Axes>
inline constexpr kind engine::kind_of<mesh<Axes...>> = kind::mesh;
template <class M, int First, int... Strides>
inline constexpr kind engine::kind_of<placed<M, First, Strides...>> = kind::mesh;
template <class M, int... Ranks>
inline constexpr kind engine::kind_of<on_ranks<M, Ranks...>> = kind::mesh;
template <class M, class A, int Coordinate>
inline constexpr kind engine::kind_of<fixed<M, A, Coordinate>> = kind::mesh;

/// Anything that names axes and says where their workers sit in the world.
template <class M>
concept Mesh = engine::kind_of<M> == kind::mesh;

namespace detail {

/// A mesh as a value, and why it is refused, if it is: then it has no axes.
struct mesh_draft {
  mesh_value made;
  refusal why;

  constexpr mesh_draft() = default;
  constexpr explicit mesh_draft(const refusal& refused) : why(refused) {}
  constexpr explicit mesh_draft(const mesh_value& m) : made(m), why(tessera::engine::check(m)) {
    if (!why.ok()) made = {};
  }
};

template <class... Axes>
constexpr mesh_draft drafted_mesh(axes_are<Axes...>) {
  constexpr int count = sizeof...(Axes);
  if constexpr (count > max_axes) {
    return mesh_draft{refusal{code::too_many, count}};
  } else {
    mesh_value m;
    refusal why;
    const auto add = [&](const text& name, index_t extent) {
      if (extent > most_workers) why = refusal{code::mesh_too_large, name, extent};
      else m.axes.push({name, static_cast<int>(extent), 1});
    };
    (add(short_name_of<bare_axis<Axes>>(), extent_along<Axes>()), ...);
    return why.ok() ? mesh_draft{row_major(m)} : mesh_draft{why};
  }
}

template <class M>
struct described_mesh;
template <class... Axes>
struct described_mesh<mesh<Axes...>> {
  static constexpr mesh_draft value = [] {
    constexpr refusal kinds = check_axes<kind::mesh, Axes...>();
    if constexpr (kinds.ok()) return drafted_mesh(typename all_factors<axes_are<>, Axes...>::type{});
    else return mesh_draft{kinds};
  }();
};

// What is said of another mesh: refused where that is, and where it is none.
template <class M>
constexpr mesh_draft drafted_of() {
  if constexpr (kind_of<M> == kind::mesh) return described_mesh<M>::value;
  else return mesh_draft{check_kinds<kind::mesh, kind::mesh, M>()};
}

template <class M, int First, int... Strides>
struct described_mesh<placed<M, First, Strides...>> {
  static constexpr mesh_draft value = [] {
    const mesh_draft of = drafted_of<M>();
    if (!of.why.ok()) return of;
    constexpr int given = sizeof...(Strides);
    const int strides[]{Strides..., 0};
    mesh_value m = row_major(of.made, First);
    if (given != 0 && given != m.axes.count)
      return mesh_draft{refusal{code::wrong_number_of_strides, m.axes.count, given}};
    for (int i = 0; i < given; ++i) m.axes[i].stride = strides[i];
    return mesh_draft{m};
  }();
};
template <class M, int... Ranks>
struct described_mesh<on_ranks<M, Ranks...>> {
  static constexpr int list[]{Ranks..., 0};
  static constexpr mesh_draft value = [] {
    const mesh_draft of = drafted_of<M>();
    if (!of.why.ok()) return of;
    constexpr int given = sizeof...(Ranks);
    if (given != of.made.size()) return mesh_draft{refusal{code::wrong_number_of_ranks, of.made.size(), given}};
    return mesh_draft{row_major(of.made, 0, list)};
  }();
};
template <class M, class A, int Coordinate>
struct described_mesh<fixed<M, A, Coordinate>> {
  static constexpr mesh_draft value = [] {
    const mesh_draft of = drafted_of<M>();
    const refusal kinds = first_of(of.why, check_axes<kind::mesh, A>(1));
    if (!kinds.ok()) return mesh_draft{kinds};
    constexpr text name = short_name_of<bare_axis<A>>();
    const int a = of.made.find(name);
    if (a < 0) return mesh_draft{refusal{code::axis_not_in_mesh, name, of.made.axes.count}};
    const int extent = of.made.axes[a].extent;
    if (Coordinate < 0 || Coordinate >= extent)
      return mesh_draft{refusal{code::coordinate_outside_axis, name, extent, Coordinate}};
    return mesh_draft{without_axis(of.made, a, Coordinate)};
  }();
};

// Whether a mesh can be used; partitions ask, so that a mesh which does not fit is refused once.
template <class M>
struct mesh_check {
  static constexpr refusal value = drafted_of<M>().why;
};

// The value of a mesh that is accepted.
template <class M>
struct accepted_mesh {
  using verdict = verdict_of<mesh_check<M>>;
  static_assert((verdict::template refuse<verdict>(), true));
  static constexpr const mesh_value& value = described_mesh<M>::value.made;
};

}  // namespace detail

/// A Cartesian topology of workers: `mesh<row, col>` with row : axis<2> and col : axis<2> is a 2 x 2 grid.
///
/// Row-major from world rank 0 on, the last axis adjacent; `placed` and `fixed` say otherwise.
template <class... Axes>
struct mesh {
  static constexpr const mesh_value& value = detail::accepted_mesh<mesh>::value;
};

/// A mesh placed elsewhere in the world: world rank = First + Σ Stride·coordinate (row-major where no strides are
/// given).
template <class M, int First, int... Strides>
struct placed {
  static constexpr const mesh_value& value = detail::accepted_mesh<placed>::value;
};

/// A mesh on an arbitrary list of workers: the coordinate with row-major number k sits on the k-th rank.
template <class M, int... Ranks>
struct on_ranks {
  static constexpr const mesh_value& value = detail::accepted_mesh<on_ranks>::value;
};

/// The sub-mesh of `M` in which `A` is fixed at a coordinate: the workers of one line less.
template <class M, class A, int Coordinate = 0>
struct fixed {
  static constexpr const mesh_value& value = detail::accepted_mesh<fixed>::value;
};

namespace detail {

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
    : std::conditional_t<short_name_of<A>() == short_name_of<First>(), drop_axis<axes_are<Out...>, A, Rest...>,
                         drop_axis<axes_are<Out..., First>, A, Rest...>> {};
template <class List, class A>
struct drop_from;
template <class... Axes, class A>
struct drop_from<axes_are<Axes...>, A> : drop_axis<axes_are<>, A, Axes...> {};
template <class M, class A, int C>
struct axis_list<fixed<M, A, C>> : drop_from<typename axis_list<M>::type, bare_axis<A>> {};

}  // namespace detail
}  // namespace tessera
