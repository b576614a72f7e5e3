#pragma once

#include <tessera/meta/indices.hpp>
#include <tessera/topology/partition.hpp>

namespace tessera::detail {

// The partition type that a layout value names, in canonical spelling: covers in order, then partial, invariant and on,
// each in mesh order. Replicate is left out.

template <int I, class A>
struct indexed_axis {
  using type = A;
};
template <class Indices, class... Axes>
struct indexed_axes;
template <int... I, class... Axes>
struct indexed_axes<indices<I...>, Axes...> : indexed_axis<I, Axes>... {};
template <int I, class A>
indexed_axis<I, A> axis_at(const indexed_axis<I, A>*);

template <class List>
struct indexed_from;
template <class... Axes>
struct indexed_from<axes_are<Axes...>> {
  using type = indexed_axes<indices_below<sizeof...(Axes)>, Axes...>;
};

template <class M, int I>
using axis_type_at = typename decltype(axis_at<I>(
    static_cast<const typename indexed_from<typename axis_list<M>::type>::type*>(nullptr)))::type;

// Axes that act as one.
template <class Axes>
struct as_one;
template <class A>
struct as_one<axes_are<A>> {
  using type = A;
};
template <class... Axes>
struct as_one<axes_are<Axes...>> {
  using type = product<Axes...>;
};
template <class Axes>
using one_axis = typename as_one<Axes>::type;

// The axes that cut a dimension, from the innermost level outwards; those that cut together become a product.
template <class M, class Source, int Dim, int Level, class... Done, class... Group>
auto cutters(axes_are<Done...> done, axes_are<Group...>) {
  if constexpr (Level < 0) {
    return done;
  } else {
    constexpr int a = Source::value.cutter(Dim, Level);
    using joined_axes = axes_are<axis_type_at<M, a>, Group...>;
    if constexpr (Source::value.placements[a].joined) return cutters<M, Source, Dim, Level - 1>(done, joined_axes{});
    else return cutters<M, Source, Dim, Level - 1>(axes_are<one_axis<joined_axes>, Done...>{}, axes_are<>{});
  }
}

template <class M, class Source, int Dim, class Levels>
struct cover_named;
template <class M, class Source, int Dim, int... Level>
struct cover_named<M, Source, Dim, indices<Level...>> {
  static constexpr const dimension& d = Source::value.dims[Dim];
  static constexpr bool joined = (Source::value.placements[Source::value.cutter(Dim, Level)].joined || ...);

  template <class... Axes>
  static auto cut_by(axes_are<Axes...>) {
    if constexpr (d.grain() > 1) return grains<d.grain(), Axes...>{};
    else return blocks<Axes...>{};
  }
  template <class... Axes>
  static auto in_zigzag(axes_are<Axes...>) {
    if constexpr (d.grain() > 1) return zigzag<grains<d.grain(), Axes...>>{};
    else return zigzag<Axes...>{};
  }
  template <int... Part>
  static auto cut_at(indices<Part...>) {
    using axes = axes_are<axis_type_at<M, Source::value.cutter(Dim, Level)>...>;
    return lengths<one_axis<axes>, dim<(d.extent == dynamic || d.bounds[Part + 1] * d.grain() <= d.extent
                                            ? (d.bounds[Part + 1] - d.bounds[Part]) * d.grain()
                                            : d.extent - d.bounds[Part] * d.grain())>...>{};
  }
  static auto cut() {
    if constexpr (sizeof...(Level) == 0) return whole{};
    else if constexpr (d.bounds == learned)
      return lengths<one_axis<axes_are<axis_type_at<M, Source::value.cutter(Dim, Level)>...>>>{};
    else if constexpr (d.zigzag) return in_zigzag(axes_are<axis_type_at<M, Source::value.cutter(Dim, Level)>...>{});
    else if constexpr (d.bounds != nullptr) return cut_at(indices_below<Source::value.part_count(Dim)>{});
    else if constexpr (joined)
      return cut_by(cutters<M, Source, Dim, static_cast<int>(sizeof...(Level)) - 1>(axes_are<>{}, axes_are<>{}));
    else return cut_by(axes_are<axis_type_at<M, Source::value.cutter(Dim, Level)>...>{});
  }
  static auto dealt() {
    if constexpr (d.turned != 0) return rotated<decltype(cut()), d.turned>{};
    else return cut();
  }
  static auto named() {
    using tiles = decltype(dealt());
    constexpr window w = d.needs;
    if constexpr (d.kind == cover::haloed)
      return haloed<tiles, d.outputs, w.a, w.b, w.b2, w.c, w.edge, w.unreached_before, w.unreached_after>{};
    else if constexpr (d.kind == cover::pending)
      return pending<tiles, d.outputs, w.a, w.b, w.b2, w.c, w.edge, w.unreached_before, w.unreached_after>{};
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

template <class Source, placement Kind, combine With>
constexpr auto axes_meaning() {
  static_vector<int, max_axes> axes;
  for (int a = 0; a < Source::value.placements.count; ++a)
    if (Source::value.placements[a].kind == Kind && Source::value.placements[a].with == With &&
        Source::value.mesh.axes[a].extent > 1)
      axes.push(a);
  return axes;
}

template <class M, class Source, placement Kind, combine With, template <class...> class Meaning, class... Combine>
struct placement_named {
  static constexpr auto axes = axes_meaning<Source, Kind, With>();
  template <int... I>
  static auto named(indices<I...>) {
    if constexpr (sizeof...(I) == 0) return entries<>{};
    else return entries<Meaning<axis_type_at<M, axes[I]>..., Combine...>>{};
  }
  using type = decltype(named(indices_below<axes.count>{}));
};

// Sums first, then the other combines that there are.
template <class M, class Source>
struct partials_named {
  using sums = typename placement_named<M, Source, placement::partial, combine::sum, partial>::type;
  static constexpr bool others = [] {
    bool found = false;
    for (const axis_placement& r : Source::value.placements)
      found = found || (r.kind == placement::partial && r.with != combine::sum);
    return found;
  }();
  template <combine With, class Name>
  using of = typename placement_named<M, Source, placement::partial, With, partial, Name>::type;
  static auto named() {
    if constexpr (others)
      return typename join<typename join<typename join<sums, of<combine::max, max>>::type, of<combine::min, min>>::type,
                           typename join<typename join<of<combine::prod, prod>, of<combine::any, any>>::type,
                                         of<combine::all, all>>::type>::type{};
    else return sums{};
  }
  using type = decltype(named());
};

template <class M, class Source>
struct on_named {
  static constexpr auto axes = axes_meaning<Source, placement::on, combine::sum>();
  template <int... I>
  static auto named(indices<I...>) {
    return entries<on<axis_type_at<M, axes[I]>, Source::value.placements[axes[I]].coordinate>...>{};
  }
  using type = decltype(named(indices_below<axes.count>{}));
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
struct partition_named<M, Source, indices<Dim...>> {
  using covers = entries<typename cover_named<M, Source, Dim, indices_below<Source::value.levels(Dim)>>::type...>;
  using partials = typename partials_named<M, Source>::type;
  using invariants = typename placement_named<M, Source, placement::invariant, combine::sum, invariant>::type;
  using type = typename partition_with<
      M, typename join<typename join<covers, partials>::type,
                       typename join<invariants, typename on_named<M, Source>::type>::type>::type>::type;
};

/// The partition type over mesh type `M` whose layout value is `Source::value`.
template <class M, class Source>
using partition_from = typename partition_named<M, Source, indices_below<Source::value.dims.count>>::type;

}  // namespace tessera::detail
