#pragma once

#include <tessera/topology/group.hpp>
#include <tessera/topology/mesh.hpp>
#include <tessera/topology/shape.hpp>

namespace tessera {

/// A dimension that nothing cuts.
struct whole {};

/// A dimension cut into balanced parts by the axes in turn: `blocks<a, b>` cuts by a, then each part by b.
///
/// Over one axis of extent p, coordinate i holds [cut(n, p, i), cut(n, p, i + 1)).
template <class... Axes>
struct blocks {};

/// Blocks that never split units of `Grain` elements: the features of a channel, of an attention head.
template <index_t Grain, class... Axes>
struct grains {};

/// What a window needs for the outputs that `Blocks` gives a worker; workers hold copies, which may overlap.
///
/// Output y of `Outputs` needs the inputs [⌊(A·y + B)/C⌋, ⌊(A·y + B2)/C⌋ + 1).
template <class Blocks, index_t Outputs, index_t A, index_t B, index_t B2, index_t C = 1>
struct haloed {};

/// The cotangent of a haloed dimension: the same intervals, but terms of a pending sum.
template <class Blocks, index_t Outputs, index_t A, index_t B, index_t B2, index_t C = 1>
struct pending {};

/// Equal copies that each worker may use differently: what an axis means unless the partition says otherwise.
template <class... Axes>
struct replicate {};

/// Terms of a pending sum.
template <class... Axes>
struct partial {};

/// Equal copies that all workers use alike.
template <class... Axes>
struct invariant {};

/// Held by one coordinate of an axis alone.
template <class Axis, int Coordinate = 0>
struct on {};

namespace detail {

/// A layout being written from a partition's entries, with the first thing that does not fit.
struct draft {
  layout value;
  refusal why;
  static_vector<signed char, max_axes> used;

  constexpr int take(const text& axis) {
    const int a = value.mesh.find(axis);
    if (!why.ok()) return -1;
    if (a < 0) {
      why = refusal{code::axis_not_in_mesh, unknown, value.mesh.axes.count};
      return -1;
    }
    if (used[a] != 0) {
      why = refusal{code::axis_used_twice, a};
      return -1;
    }
    used[a] = 1;
    return a;
  }
  int unknown = 0;  // how many axes were named before the one that is not in the mesh
};

template <class... Axes>
constexpr void cut_by(draft& x, index_t grain) {
  const int d = x.value.dims.count;
  if (d == max_dimensions) {
    x.why = first_of(x.why, refusal{code::too_many, x.value.mesh.axes.count, d + 1});
    return;
  }
  if (grain < 1) x.why = first_of(x.why, refusal{code::grain_not_positive, d, grain});
  dimension dim;
  dim.extent = dynamic;
  dim.set_grain(grain);
  x.value.dims.push(dim);
  [[maybe_unused]] const auto one = [&](const text& name) {
    const int a = x.take(name);
    if (a >= 0) x.value.cut_by(d, a);
    ++x.unknown;
  };
  (one(short_name_of<bare_axis<Axes>>()), ...);
}

// An axis, or all axes of a group (`along<…>`, `except<…>`), get a meaning.
template <class... Axes>
constexpr void mean(draft& x, axis_role what) {
  [[maybe_unused]] const auto one = [&](const text& name) {
    const int a = x.take(name);
    if (a >= 0) x.value.roles[a] = what;
    ++x.unknown;
  };
  [[maybe_unused]] const auto each = [&]<class A>(std::type_identity<A>) {
    if constexpr (group_names<A>::is_group) {
      for (int a : group_in<A>(x.value.mesh)) one(x.value.mesh.axes[a].name);
    } else {
      one(short_name_of<bare_axis<A>>());
    }
  };
  (each(std::type_identity<Axes>{}), ...);
}

template <class E>
struct entry;
template <>
struct entry<whole> {
  static constexpr bool is_cover = true;
  static constexpr void write(draft& x) { cut_by<>(x, 1); }
};
template <class... Axes>
struct entry<blocks<Axes...>> {
  static constexpr bool is_cover = true;
  static constexpr void write(draft& x) { cut_by<Axes...>(x, 1); }
};
template <index_t Grain, class... Axes>
struct entry<grains<Grain, Axes...>> {
  static constexpr bool is_cover = true;
  static constexpr void write(draft& x) { cut_by<Axes...>(x, Grain); }
};
template <class Blocks, cover Kind, index_t Outputs, index_t A, index_t B, index_t B2, index_t C>
struct windowed_entry {
  static constexpr bool is_cover = true;
  static constexpr void write(draft& x) {
    entry<Blocks>::write(x);
    dimension& d = x.value.dims[x.value.dims.count - 1];
    d.kind = Kind;
    d.outputs = Outputs;
    d.needs = {A, B, B2, C, boundary::zero};
  }
};
template <class Blocks, index_t Outputs, index_t A, index_t B, index_t B2, index_t C>
struct entry<haloed<Blocks, Outputs, A, B, B2, C>> : windowed_entry<Blocks, cover::haloed, Outputs, A, B, B2, C> {};
template <class Blocks, index_t Outputs, index_t A, index_t B, index_t B2, index_t C>
struct entry<pending<Blocks, Outputs, A, B, B2, C>> : windowed_entry<Blocks, cover::pending, Outputs, A, B, B2, C> {};
template <class... Axes>
struct entry<replicate<Axes...>> {
  static constexpr bool is_cover = false;
  static constexpr void write(draft& x) { mean<Axes...>(x, {role::replicate}); }
};
template <class... Axes>
struct entry<partial<Axes...>> {
  static constexpr bool is_cover = false;
  static constexpr void write(draft& x) { mean<Axes...>(x, {role::partial}); }
};
template <class... Axes>
struct entry<invariant<Axes...>> {
  static constexpr bool is_cover = false;
  static constexpr void write(draft& x) { mean<Axes...>(x, {role::invariant}); }
};
template <class Axis, int Coordinate>
struct entry<on<Axis, Coordinate>> {
  static constexpr bool is_cover = false;
  static constexpr void write(draft& x) {
    mean<Axis>(x, {role::on, -1, 0, combine::sum, Coordinate});
    const int a = x.value.mesh.find(short_name_of<bare_axis<Axis>>());
    if (x.why.ok() && (Coordinate < 0 || Coordinate >= x.value.mesh.axes[a].extent))
      x.why = refusal{code::coordinate_outside_axis, a, x.value.mesh.axes[a].extent, Coordinate};
  }
};

template <class E>
concept entry_of_partition = requires { entry<E>::is_cover; };

template <class M, class... Entries>
constexpr draft drafted() {
  draft x;
  x.value.mesh = M::value;
  x.value.roles.resize(M::value.axes.count);
  x.used.resize(M::value.axes.count);
  (entry<Entries>::write(x), ...);
  return x;
}

}  // namespace detail

/// How a tensor is split: a mesh, a cover for each dimension, a meaning for each axis that cuts nothing.
///
/// `partition<grid, blocks<data>, whole, partial<model>>`: covers first, one a dimension; axes not named are replicate.
template <Mesh M, detail::entry_of_partition... Entries>
struct partition {
  using mesh_type = M;
  static constexpr int dimensions = (0 + ... + (detail::entry<Entries>::is_cover ? 1 : 0));
};

namespace detail {

template <class P>
struct partition_draft;
template <class M, class... Entries>
struct partition_draft<partition<M, Entries...>> {
  static constexpr draft value = drafted<M, Entries...>();
};

template <class P>
struct partition_check {
  static constexpr refusal value = [] {
    const refusal m = mesh_check<typename P::mesh_type>::value;
    return m.ok() ? partition_draft<P>::value.why : m;
  }();
};

}  // namespace detail

/// Anything that says how a tensor is split, without saying its extents.
template <class P>
concept PartitionType = requires {
  typename P::mesh_type;
  { P::dimensions } -> std::convertible_to<int>;
};

/// The layout value of a partition, with all extents dynamic.
template <class P>
inline constexpr const layout& layout_of_partition = detail::partition_draft<P>::value.value;

}  // namespace tessera
