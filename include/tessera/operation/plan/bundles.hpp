#pragma once

#include <tessera/meta/static_vector.hpp>
#include <tessera/operation/refusals.hpp>
#include <tessera/topology/element.hpp>
#include <tessera/topology/layout.hpp>

namespace tessera::engine {

/// How gradients share bundles, the field's buckets: in bytes.
struct bundle_limits {
  index_t capacity = index_t{25} << 20;
  index_t alignment = 512;  ///< of each member's beginning

  /// Whether a member is large enough to travel alone: from four fifths of the capacity on.
  constexpr bool alone(index_t bytes) const { return bytes >= capacity - capacity / 5; }
  /// Where the next member may begin.
  constexpr index_t aligned(index_t bytes) const { return (bytes + alignment - 1) / alignment * alignment; }
};

/// Where a member lies: in which bundle, and from which byte of it on. One that travels alone lies in none.
struct bundle_range {
  int bundle = -1;
  index_t begin = 0;

  constexpr bool alone() const { return bundle < 0; }
  friend constexpr bool operator==(const bundle_range&, const bundle_range&) = default;
};

/// Packs members into bundles in order: each into the open bundle of its kind, or into a new one where that has no
/// room. Members of a kind have one element and one way back, so that one change of layout brings all.
///
/// Law: ranges of a bundle are aligned, in order and disjoint; a bundle holds `capacity` at most. Of two neighbours of
/// a kind, the first has no room for the second's first member. Bundles are numbered as they are opened.
template <class Kind, int Kinds>
class bundle_packer {
 public:
  constexpr explicit bundle_packer(const bundle_limits& limits = {}) : limits_(limits) {}

  /// Where a member of so many bytes lies. More kinds than `Kinds` are refused (tessera.list_full).
  constexpr bundle_range add(const Kind& kind, index_t bytes) {
    if (limits_.alone(bytes)) return {};
    open_bundle& open = open_of(kind);
    index_t begin = limits_.aligned(open.filled);
    if (open.bundle < 0 || begin + bytes > limits_.capacity) {
      open.bundle = count_++;
      begin = 0;
    }
    open.filled = begin + bytes;
    return {open.bundle, begin};
  }
  /// How many bundles were opened.
  constexpr int count() const { return count_; }

 private:
  struct open_bundle {
    Kind kind{};
    int bundle = -1;
    index_t filled = 0;
  };

  constexpr open_bundle& open_of(const Kind& kind) {
    for (open_bundle& one : open_)
      if (one.kind == kind) return one;
    open_.push({kind});
    return open_[open_.count - 1];
  }

  bundle_limits limits_;
  static_vector<open_bundle, Kinds> open_;
  int count_ = 0;
};

/// The gradients that may share a bundle: those of one element that are summed over the same axes of one mesh.
struct bundle_kind {
  mesh_value mesh;
  unsigned axes = 0;
  tessera::element element{};

  friend constexpr bool operator==(const bundle_kind& a, const bundle_kind& b) {
    return a.element == b.element && a.axes == b.axes && a.mesh == b.mesh;
  }
};

/// The axes over which the gradient of a parameter is summed, one bit each, where that is all that its way back does;
/// else none.
constexpr unsigned summed_axes(const layout& stored, const layout& used) {
  layout copies = used;
  unsigned axes = 0;
  for (int a = 0; a < copies.placements.count && a < stored.placements.count; ++a) {
    axis_placement& r = copies.placements[a];
    if (r.kind != placement::replicate || stored.placements[a].kind != placement::invariant) continue;
    if (stored.mesh.axes[a].extent > 1) axes |= 1u << a;
    r = stored.placements[a];
  }
  return copies == stored ? axes : 0;
}

/// The workers that differ from those at some coordinates along these axes alone.
constexpr mesh_value summing_workers(const mesh_value& mesh, unsigned axes, const coordinates& at) {
  mesh_value few = mesh;
  for (int a = mesh.axes.count - 1; a >= 0; --a)
    if ((axes >> a & 1u) == 0) few = without_axis(few, a, at[a]);
  return few;
}

}  // namespace tessera::engine
