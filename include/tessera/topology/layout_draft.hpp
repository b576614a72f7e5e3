#pragma once

#include <tessera/topology/entries.hpp>
#include <tessera/topology/group.hpp>
#include <tessera/topology/mesh.hpp>
#include <tessera/topology/shape.hpp>

namespace tessera::detail {

/// A layout being written from a partition's entries, with the first thing that does not fit.
struct draft {
  layout value;
  refusal why;
  static_vector<signed char, max_axes> used;
  static_vector<index_t, max_axes> declared;  // the extents of the axes' own types, which a mesh may override

  constexpr draft() = default;
  constexpr explicit draft(const refusal& refused) : why(refused) {}

  constexpr int claim(const text& axis, index_t extent) {
    const int a = value.mesh.find(axis);
    if (!why.ok()) return -1;
    if (a < 0) {
      why = refusal{code::axis_not_in_mesh, axis, value.mesh.axes.count};
      return -1;
    }
    if (extent != value.mesh.axes[a].extent && extent != declared[a]) {
      why = refusal{code::axes_of_one_name, axis, value.mesh.axes[a].extent, extent};
      return -1;
    }
    if (used[a] != 0) {
      why = refusal{code::axis_used_twice, axis};
      return -1;
    }
    used[a] = 1;
    return a;
  }
};

template <class... Axes>
constexpr void cut_by(draft& x, index_t grain) {
  const int d = x.value.dims.count;
  if (d == max_dimensions) {
    x.why = first_of(x.why, refusal{code::too_many, d + 1});
    return;
  }
  if (grain < 1) x.why = first_of(x.why, refusal{code::grain_not_positive, d, grain});
  dimension dim;
  dim.extent = dynamic;
  dim.set_grain(grain);
  x.value.dims.push(dim);
  [[maybe_unused]] const auto each = [&]<class... Factors>(axes_are<Factors...>) {
    bool joined = false;  // the factors of a product cut at once
    const auto one = [&](const text& name, index_t extent) {
      const int a = x.claim(name, extent);
      if (a >= 0) x.value.cut_by(d, a, joined);
      joined = true;
    };
    (one(short_name_of<bare_axis<Factors>>(), extent_along<Factors>()), ...);
  };
  (each(typename factors<Axes>::type{}), ...);
}

// An axis, all factors of a product, or all axes of a group (`along<…>`, `except<…>`) get a placement.
template <class... Axes>
constexpr void set_placement(draft& x, axis_placement to) {
  [[maybe_unused]] const auto one = [&](const text& name, index_t extent) {
    const int a = x.claim(name, extent);
    if (a >= 0) x.value.placements[a] = to;
  };
  [[maybe_unused]] const auto each = [&]<class A>(std::type_identity<A>) {
    if constexpr (kind_of<A> == kind::group) {
      for (int a : group_in<A>(x.value.mesh)) one(x.value.mesh.axes[a].name, x.value.mesh.axes[a].extent);
    } else if constexpr (!is_combine<A>) {
      [&]<class... Factors>(axes_are<Factors...>) {
        (one(short_name_of<bare_axis<Factors>>(), extent_along<Factors>()), ...);
      }(typename factors<A>::type{});
    }
  };
  (each(std::type_identity<Axes>{}), ...);
}

}  // namespace tessera::detail
