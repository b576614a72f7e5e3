#pragma once

#include <tessera/meta/static_vector.hpp>
#include <tessera/operation/refusals.hpp>
#include <tessera/topology/element.hpp>

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

/// Lays members into bundles, one after the other: each into the open bundle of its kind, or into a new one where that
/// has no room for it. Members of a kind have one element and one way back, so that one change of layout brings all.
///
/// Law: ranges of a bundle are aligned, in order and disjoint; a bundle holds `capacity` at most; of two neighbours of
/// a kind the first has no room for the second's first member. Bundles are numbered as they are opened.
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

}  // namespace tessera::engine
