#pragma once

#include <tessera/topology/partition.hpp>

#include <utility>

namespace tessera::detail {

// From values back to types: the partition type that a layout value names, in canonical spelling (covers in order, then
// partial, invariant and on, each in mesh order; replicate is left out).

template <int I, class A>
struct indexed_axis {
  using type = A;
};
template <class Indices, class... Axes>
struct indexed_axes;
template <int... I, class... Axes>
struct indexed_axes<std::integer_sequence<int, I...>, Axes...> : indexed_axis<I, Axes>... {};
template <int I, class A>
indexed_axis<I, A> axis_at(const indexed_axis<I, A>*);

template <class List>
struct indexed_from;
template <class... Axes>
struct indexed_from<axes_are<Axes...>> {
  using type = indexed_axes<std::make_integer_sequence<int, sizeof...(Axes)>, Axes...>;
};

template <class M, int I>
using axis_type_at =
    typename decltype(axis_at<I>(static_cast<const typename indexed_from<typename axis_list<M>::type>::type*>(nullptr)))::type;

template <class M, class Source, int Dim, class Levels>
struct cover_named;
template <class M, class Source, int Dim, int... Level>
struct cover_named<M, Source, Dim, std::integer_sequence<int, Level...>> {
  static constexpr const dimension& d = Source::value.dims[Dim];
  static auto cut() {
    if constexpr (sizeof...(Level) == 0) return whole{};
    else if constexpr (d.grain() > 1) return grains<d.grain(), axis_type_at<M, Source::value.cutting(Dim, Level)>...>{};
    else return blocks<axis_type_at<M, Source::value.cutting(Dim, Level)>...>{};
  }
  static auto named() {
    using tiles = decltype(cut());
    constexpr window w = d.needs;
    if constexpr (d.kind == cover::haloed) return haloed<tiles, d.outputs, w.a, w.b, w.b2, w.c>{};
    else if constexpr (d.kind == cover::pending) return pending<tiles, d.outputs, w.a, w.b, w.b2, w.c>{};
    else return tiles{};
  }
  using type = decltype(named());
};

template <class... Entries>
struct entries {};

template <class A, class B>
struct join;
template <class... A, class... B>
struct join<entries<A...>, entries<B...>> {
  using type = entries<A..., B...>;
};

template <class Source, role Kind>
constexpr auto axes_meaning() {
  static_vector<int, max_axes> axes;
  for (int a = 0; a < Source::value.roles.count; ++a)
    if (Source::value.roles[a].kind == Kind && Source::value.mesh.axes[a].extent > 1) axes.push(a);
  return axes;
}

template <class M, class Source, role Kind, template <class...> class Meaning>
struct meaning_named {
  static constexpr auto axes = axes_meaning<Source, Kind>();
  template <int... I>
  static auto named(std::integer_sequence<int, I...>) {
    if constexpr (sizeof...(I) == 0) return entries<>{};
    else return entries<Meaning<axis_type_at<M, axes[I]>...>>{};
  }
  using type = decltype(named(std::make_integer_sequence<int, axes.count>{}));
};

template <class M, class Source>
struct on_named {
  static constexpr auto axes = axes_meaning<Source, role::on>();
  template <int... I>
  static auto named(std::integer_sequence<int, I...>) {
    return entries<on<axis_type_at<M, axes[I]>, Source::value.roles[axes[I]].coordinate>...>{};
  }
  using type = decltype(named(std::make_integer_sequence<int, axes.count>{}));
};

template <class M, class Entries>
struct partition_with;
template <class M, class... E>
struct partition_with<M, entries<E...>> {
  using type = partition<M, E...>;
};

template <class M, class Source, class Dims>
struct partition_named;
template <class M, class Source, int... Dim>
struct partition_named<M, Source, std::integer_sequence<int, Dim...>> {
  using covers = entries<
      typename cover_named<M, Source, Dim, std::make_integer_sequence<int, Source::value.levels(Dim)>>::type...>;
  using partials = typename meaning_named<M, Source, role::partial, partial>::type;
  using invariants = typename meaning_named<M, Source, role::invariant, invariant>::type;
  using type = typename partition_with<
      M, typename join<typename join<covers, partials>::type,
                       typename join<invariants, typename on_named<M, Source>::type>::type>::type>::type;
};

/// The partition type over mesh type `M` whose layout value is `Source::value`.
template <class M, class Source>
using partition_from =
    typename partition_named<M, Source, std::make_integer_sequence<int, Source::value.dims.count>>::type;

}  // namespace tessera::detail
