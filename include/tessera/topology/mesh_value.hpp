#pragma once

#include <tessera/generated/topology.hpp>
#include <tessera/meta/static_vector.hpp>
#include <tessera/meta/text.hpp>

namespace tessera {

namespace engine {

/// The most axes of a mesh, and the most dimensions of a tensor.
inline constexpr int max_axes = 16;

inline constexpr int max_dimensions = 16;

}  // namespace engine

/// Where a worker stands in a mesh: one number for each axis, in mesh order.
using coordinates = static_vector<int, engine::max_axes>;

namespace engine {

/// One axis of a mesh, as a value.
struct axis_value {
  text name;
  int extent = 0;
  int stride = 0;  ///< distance in the world of neighbours along this axis

  friend constexpr bool operator==(const axis_value&, const axis_value&) = default;
};

}  // namespace engine

/// A Cartesian topology and where it sits in the world, as a value.
///
/// world rank = first + Σ stride·coordinate. With a list of ranks (owned elsewhere) it is the position in that list:
/// part of a list is part of the list.
struct mesh_value {
  static_vector<engine::axis_value, engine::max_axes> axes = engine::no_items<engine::axis_value, engine::max_axes>;
  int first = 0;
  const int* ranks = nullptr;

  /// The number of workers in it.
  constexpr int size() const {
    int n = 1;
    for (const auto& a : axes) n *= a.extent;
    return n;
  }

  /// The place of an axis in mesh order, or -1.
  constexpr int find(const text& name) const {
    for (int i = 0; i < axes.count; ++i)
      if (axes[i].name == name) return i;
    return -1;
  }

  /// The coordinates with row-major number `number`.
  constexpr coordinates at(int number) const {
    coordinates c;
    c.resize(axes.count);
    for (int i = axes.count - 1; i >= 0; --i) {
      c[i] = number % axes[i].extent;
      number /= axes[i].extent;
    }
    return c;
  }

  /// The row-major number of coordinates; at(number(c)) = c.
  constexpr int number(const coordinates& c) const {
    int n = 0;
    for (int i = 0; i < axes.count; ++i) n = n * axes[i].extent + c[i];
    return n;
  }

  /// The world rank of a worker.
  constexpr int rank(const coordinates& c) const {
    int r = first;
    for (int i = 0; i < axes.count; ++i) r += axes[i].stride * c[i];
    return ranks == nullptr ? r : ranks[r];
  }

  /// Finds the coordinates of a world rank; false when it is not in the mesh. rank(c) = r.
  constexpr bool locate(int r, coordinates& c) const {
    if (ranks != nullptr) {
      for (int i = 0; i < size(); ++i)
        if (rank(at(i)) == r) {
          c = at(i);
          return true;
        }
      return false;
    }
    c = coordinates{};
    c.resize(axes.count);
    return locate_from(0, r - first, c);
  }

  constexpr bool contains(int r) const {
    coordinates c;
    return locate(r, c);
  }

  /// Same axes of the same extents on the same workers.
  friend constexpr bool operator==(const mesh_value& a, const mesh_value& b) {
    if (!a.same_axes(b)) return false;
    if (a.ranks == b.ranks) {
      if (a.first != b.first) return false;
      for (int i = 0; i < a.axes.count; ++i)
        if (a.axes[i].extent > 1 && a.axes[i].stride != b.axes[i].stride) return false;
      return true;
    }
    for (int i = 0; i < a.size(); ++i)
      if (a.rank(a.at(i)) != b.rank(b.at(i))) return false;
    return true;
  }

  constexpr bool same_axes(const mesh_value& other) const {
    if (axes.count != other.axes.count) return false;
    for (int i = 0; i < axes.count; ++i)
      if (axes.items[i].extent != other.axes.items[i].extent || axes.items[i].name != other.axes.items[i].name)
        return false;
    return true;
  }

 private:
  // Strides come in any order, so the axis that goes farthest is tried first; where strides nest, one coordinate fits.
  constexpr bool locate_from(unsigned done, int left, coordinates& c) const {
    int next = -1;
    for (int i = 0; i < axes.count; ++i)
      if ((done >> i & 1u) == 0 && (next < 0 || axes[i].stride > axes[next].stride)) next = i;
    if (next < 0) return left == 0;
    const unsigned then = done | 1u << next;
    int below = 0;  // the smallest and the largest that the axes behind it can add
    int above = 0;
    for (int i = 0; i < axes.count; ++i)
      if ((then >> i & 1u) == 0) (axes[i].stride < 0 ? below : above) += axes[i].stride * (axes[i].extent - 1);
    for (int k = 0; k < axes[next].extent; ++k) {
      const int rest = left - axes[next].stride * k;
      if (rest < below || rest > above) continue;
      c[next] = k;
      if (locate_from(then, rest, c)) return true;
    }
    return false;
  }
};

/// Lets `mesh` sit row-major and without gaps from world rank `first` on, or along a list of ranks.
constexpr mesh_value row_major(mesh_value mesh, int first = 0, const int* ranks = nullptr) {
  mesh.first = first;
  mesh.ranks = ranks;
  int stride = 1;
  for (int i = mesh.axes.count - 1; i >= 0; --i) {
    mesh.axes[i].stride = stride;
    stride = static_cast<int>(detail::clamped(index_t{stride} * mesh.axes[i].extent, 0, INT32_MAX));
  }
  return mesh;
}

namespace engine {

/// The sub-mesh in which one axis is fixed at a coordinate.
///
/// Its workers are those of `mesh` at that coordinate.
constexpr mesh_value without_axis(const mesh_value& mesh, int axis, int coordinate) {
  mesh_value left;
  left.ranks = mesh.ranks;
  left.first = mesh.first + mesh.axes[axis].stride * coordinate;
  for (int i = 0; i < mesh.axes.count; ++i)
    if (i != axis) left.axes.push(mesh.axes[i]);
  return left;
}

}  // namespace engine

namespace detail {

/// Refuses workers whose ranks are no numbers of a world.
constexpr refusal check_ranks(const mesh_value& mesh) {
  index_t lowest = mesh.first;
  index_t highest = mesh.first;
  for (const axis_value& a : mesh.axes) (a.stride < 0 ? lowest : highest) += index_t{a.stride} * (a.extent - 1);
  for (int i = 0; mesh.ranks != nullptr && i < mesh.size(); ++i) {
    const int rank = mesh.rank(mesh.at(i));
    lowest = i == 0 ? rank : smaller(lowest, rank);
    highest = i == 0 ? rank : larger(highest, rank);
  }
  return lowest < 0 || highest > INT32_MAX ? refusal{code::rank_outside, lowest, highest} : refusal{};
}

}  // namespace detail

namespace engine {

/// Refuses extents below 1, axes named twice, more workers than can be numbered and placements that put two coordinates
/// on one.
constexpr refusal check(const mesh_value& mesh) {
  index_t workers = 1;
  for (int i = 0; i < mesh.axes.count; ++i) {
    if (mesh.axes[i].extent < 1) return refusal{code::extent_not_positive, mesh.axes[i].name, mesh.axes[i].extent};
    if (mesh.find(mesh.axes[i].name) != i) return refusal{code::axis_named_twice, mesh.axes[i].name};
    if (workers *= mesh.axes[i].extent; workers > INT32_MAX)
      return refusal{code::mesh_too_large, mesh.axes[i].name, mesh.axes[i].extent};
  }
  if (const refusal outside = detail::check_ranks(mesh); !outside.ok()) return outside;
  if (mesh.ranks == nullptr) {
    // Nested strides keep coordinates apart; only others are looked at one by one.
    bool nested = true;
    for (int i = 0; i < mesh.axes.count && nested; ++i) {
      index_t below = 0;
      for (int j = 0; j < mesh.axes.count; ++j) {
        const auto& a = mesh.axes[j];
        if (j != i && a.extent > 1 && a.stride <= mesh.axes[i].stride) below += index_t{a.stride} * (a.extent - 1);
      }
      nested = mesh.axes[i].extent == 1 || mesh.axes[i].stride > below;
    }
    if (nested) return {};
  }
  for (int i = 0; i < mesh.size(); ++i)
    for (int j = i + 1; j < mesh.size(); ++j)
      if (mesh.rank(mesh.at(i)) == mesh.rank(mesh.at(j))) return refusal{code::placement_overlaps, mesh.size()};
  return {};
}

}  // namespace engine

}  // namespace tessera
