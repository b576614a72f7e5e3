#pragma once

#include <tessera/topology/layout_draft.hpp>

namespace tessera {

namespace detail {

// What each entry writes into a layout, and what is wrong in its arguments, which is asked first.
template <class E>
struct entry;
template <>
struct entry<whole> {
  static constexpr refusal kinds() { return {}; }
  static constexpr void write(draft& x) { cut_by<>(x, 1); }
};
template <class... Axes>
struct entry<blocks<Axes...>> {
  static constexpr refusal kinds() { return check_axes<kind::cover, Axes...>(); }
  static constexpr void write(draft& x) { cut_by<Axes...>(x, 1); }
};
template <index_t Grain, class... Axes>
struct entry<grains<Grain, Axes...>> {
  static constexpr refusal kinds() { return check_axes<kind::cover, Axes...>(1); }
  static constexpr void write(draft& x) { cut_by<Axes...>(x, Grain); }
};
template <class Axis, class... Lengths>
struct entry<lengths<Axis, Lengths...>> {
  static constexpr refusal kinds() {
    return first_of(check_axes<kind::cover, Axis>(), check_kinds<kind::cover, kind::extent, Lengths...>(1));
  }
  static constexpr static_vector<index_t, sizeof...(Lengths) + 1> bounds = [] {
    static_vector<index_t, sizeof...(Lengths) + 1> b;
    index_t end = 0;
    b.push(end);
    (b.push(end = end > INT64_MAX - larger(0, Lengths::extent) ? INT64_MAX : end + Lengths::extent), ...);
    return b;
  }();
  template <class Length>
  static constexpr refusal check_length(int d) {
    return Length::extent == dynamic ? refusal{code::extent_not_static, d} : check_extent<Length>(d);
  }
  static constexpr void write(draft& x) {
    cut_by<Axis>(x, 1);
    const int d = x.value.dims.count - 1;
    if (d < 0 || !x.why.ok()) return;
    constexpr int given = sizeof...(Lengths);
    if (const int parts = x.value.part_count(d); given != 0 && given != parts)
      x.why = refusal{code::wrong_number_of_lengths, d, parts, given};
    static_cast<void>(((x.why = first_of(x.why, check_length<Lengths>(d))).ok() && ...));
    x.value.dims[d].bounds = given == 0 ? learned : bounds.items;
  }
};

// The cover that another one is made of.
template <class Cover>
constexpr refusal check_inner_cover() {
  if constexpr (kind_of<Cover> == kind::cover) return entry<Cover>::kinds();
  else return check_kinds<kind::cover, kind::cover, Cover>();
}

template <class... Axes>
struct entry<zigzag<Axes...>> {
  static constexpr refusal kinds() { return check_axes<kind::cover, Axes...>(); }
  static constexpr void write(draft& x) { write(x, 1); }
  static constexpr void write(draft& x, index_t grain) {
    cut_by<Axes...>(x, grain);
    const int d = x.value.dims.count - 1;
    if (d < 0 || !x.why.ok()) return;
    x.value.dims[d].zigzag = true;
    for (axis_placement& r : x.value.placements)
      if (r.kind == placement::cut && r.dimension == d) r.joined = false;
  }
};
template <index_t Grain, class... Axes>
struct entry<zigzag<grains<Grain, Axes...>>> {
  static constexpr refusal kinds() { return entry<grains<Grain, Axes...>>::kinds(); }
  static constexpr void write(draft& x) { entry<zigzag<Axes...>>::write(x, Grain); }
};

template <class Cover, int Parts>
struct entry<rotated<Cover, Parts>> {
  static constexpr refusal kinds() { return check_inner_cover<Cover>(); }
  static constexpr void write(draft& x) {
    entry<Cover>::write(x);
    if (const int d = x.value.dims.count - 1; d >= 0 && x.why.ok()) {
      int& turned = x.value.dims[d].turned;
      turned = static_cast<int>(modulo(index_t{turned} + Parts, x.value.part_count(d)));
    }
  }
};
template <class Cover, cover Kind, index_t Outputs, index_t A, index_t B, index_t B2, index_t C, boundary Edge,
          index_t Before, index_t After>
struct windowed_entry {
  static constexpr refusal kinds() { return check_inner_cover<Cover>(); }
  static constexpr void write(draft& x) {
    entry<Cover>::write(x);
    const int last = x.value.dims.count - 1;
    if (last < 0 || !x.why.ok()) return;
    dimension& d = x.value.dims[last];
    if (d.zigzag) x.why = refusal{code::interval_wanted, last};
    d.kind = Kind;
    d.outputs = Outputs;
    d.needs = {A, B, B2, C, Before, After, Edge};
  }
};
template <class Cover, index_t Outputs, index_t A, index_t B, index_t B2, index_t C, boundary E, index_t L, index_t H>
struct entry<haloed<Cover, Outputs, A, B, B2, C, E, L, H>>
    : windowed_entry<Cover, cover::haloed, Outputs, A, B, B2, C, E, L, H> {};
template <class Cover, index_t Outputs, index_t A, index_t B, index_t B2, index_t C, boundary E, index_t L, index_t H>
struct entry<pending<Cover, Outputs, A, B, B2, C, E, L, H>>
    : windowed_entry<Cover, cover::pending, Outputs, A, B, B2, C, E, L, H> {};

// What a placement is given: axes, groups of them, and so many combines.
template <class... Given>
constexpr refusal check_placement(int combines = 0) {
  refusal why;
  int argument = 0;
  [[maybe_unused]] const auto one = [&]<class A>(std::type_identity<A>) {
    if constexpr (kind_of<A> == kind::group) why = group_names<A>::value;
    else if (kind_of<A> != kind::combine || --combines < 0) why = check_axes<kind::placement, A>(argument);
    ++argument;
    return why.ok();
  };
  static_cast<void>((one(std::type_identity<Given>{}) && ...));
  return why;
}

template <class... Axes>
struct entry<replicate<Axes...>> {
  static constexpr refusal kinds() { return check_placement<Axes...>(); }
  static constexpr void write(draft& x) { set_placement<Axes...>(x, {placement::replicate}); }
};
template <class... Axes>
struct entry<partial<Axes...>> {
  static constexpr refusal kinds() { return check_placement<Axes...>(1); }
  static constexpr void write(draft& x) { set_placement<Axes...>(x, partial_by(combine_of<Axes...>)); }
};
template <class... Axes>
struct entry<invariant<Axes...>> {
  static constexpr refusal kinds() { return check_placement<Axes...>(); }
  static constexpr void write(draft& x) { set_placement<Axes...>(x, {placement::invariant}); }
};
template <class Axis, int Coordinate>
struct entry<on<Axis, Coordinate>> {
  static constexpr refusal kinds() { return check_axes<kind::placement, Axis>(); }
  static constexpr void write(draft& x) {
    set_placement<Axis>(x, held_on(0));
    if (!x.why.ok()) return;
    [&x]<class... Factors>(axes_are<Factors...>) {
      const int axes[]{x.value.mesh.find(short_name_of<bare_axis<Factors>>())...};
      int left = Coordinate;  // row-major over the factors, the last one fastest
      int all = 1;
      for (int i = static_cast<int>(sizeof...(Factors)) - 1; i >= 0; --i) {
        const int extent = x.value.mesh.axes[axes[i]].extent;
        x.value.placements[axes[i]].coordinate = left % extent;
        left /= extent;
        all *= extent;
      }
      if (Coordinate < 0 || Coordinate >= all)
        x.why = refusal{code::coordinate_outside_axis, x.value.mesh.axes[axes[0]].name, all, Coordinate};
    }(typename factors<Axis>::type{});
  }
};

template <class E>
inline constexpr bool is_cover = kind_of<E> == kind::cover || kind_of<E> == kind::halo;

// The kinds of a partition's arguments, those of its entries' arguments, and its mesh.
template <class M, class... Entries>
constexpr refusal check_partition() {
  refusal why = check_kinds<kind::partition, kind::mesh, M>();
  int argument = 1;
  [[maybe_unused]] const auto one = [&]<class E>(std::type_identity<E>) {
    if constexpr (is_cover<E> || kind_of<E> == kind::placement) why = entry<E>::kinds();
    else why = check_kinds<kind::partition, kind::cover, E>(argument);
    ++argument;
    return why.ok();
  };
  static_cast<void>(why.ok() && (one(std::type_identity<Entries>{}) && ...));
  return first_of(why, mesh_check<M>::value);
}

template <class M, class... Entries>
constexpr draft drafted() {
  draft x;
  x.value.mesh = described_mesh<M>::value.made;
  x.value.placements.resize(x.value.mesh.axes.count);
  x.used.resize(x.value.mesh.axes.count);
  [&]<class... Axes>(axes_are<Axes...>) {
    (x.declared.push(extent_along<Axes>()), ...);
  }(typename axis_list<M>::type{});
  (entry<Entries>::write(x), ...);
  return x;
}

}  // namespace detail

/// How a tensor is split: a mesh, a cover for each dimension, a placement for each axis that cuts nothing.
///
/// `partition<grid, blocks<data>, whole, partial<model>>`: covers first, one a dimension; axes not named are replicate.
template <class M = void, class... Entries>
struct partition {
  using mesh_type = M;
  static constexpr int dimensions = (0 + ... + (detail::is_cover<Entries> ? 1 : 0));
};
template <class M, class... Entries>
inline constexpr kind engine::kind_of<partition<M, Entries...>> = kind::partition;

namespace detail {

template <class P>
struct partition_draft;
template <class M, class... Entries>
struct partition_draft<partition<M, Entries...>> {
  static constexpr draft value = [] {
    constexpr refusal why = check_partition<M, Entries...>();
    if constexpr (why.ok()) return drafted<M, Entries...>();
    else return draft{why};
  }();
};

template <class P>
struct partition_check {
  static constexpr refusal value = partition_draft<P>::value.why;
};

template <class P>
struct accepted_partition {
  using verdict = verdict_of<partition_check<P>>;
  static_assert((verdict::template refuse<verdict>(), true));
  static constexpr const layout& value = partition_draft<P>::value.value;
};

}  // namespace detail

/// Anything that says how a tensor is split, without saying its extents.
template <class P>
concept PartitionType = engine::kind_of<P> == kind::partition;

namespace engine {

/// The layout value of a partition, with all extents dynamic.
template <PartitionType P>
inline constexpr const layout& layout_of_partition = detail::accepted_partition<P>::value;

}  // namespace engine

}  // namespace tessera
