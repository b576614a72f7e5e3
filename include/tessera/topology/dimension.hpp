#pragma once

#include <tessera/meta/text.hpp>
#include <tessera/topology/window.hpp>

namespace tessera {

/// How the parts of a dimension relate to its elements.
///
///  tiled    each element is in one part
///  haloed   parts are what a window needs for the parts of its outputs: copies, they may overlap; a range of a cut
///           dimension, whose workers keep what they held of it, is that of a window of one tap: a tiling again
///  pending  the cotangent of haloed: the same intervals, but terms until they are folded
enum class cover : signed char { tiled, haloed, pending };

namespace engine {

/// The name of dynamic extents that have none of their own.
inline constexpr text unnamed{"dyn"};

/// One dimension of a tensor: its extent and how it is cut.
struct dimension {
  index_t extent = 0;
  text tag;                         ///< the name of a dynamic extent
  index_t glued = 0;                ///< elements that are never split from the one before them: grain − 1
  const index_t* bounds = nullptr;  ///< explicit parts: part k is units [bounds[k], bounds[k + 1]); owned elsewhere
  int turned = 0;                   ///< the part that coordinate 0 holds: coordinate i holds part i + turned
  cover kind = cover::tiled;
  bool zigzag = false;  ///< part k of p is chunks k and 2p − 1 − k of 2p, two intervals
  index_t outputs = 0;  ///< haloed: extent of the dimension whose parts the window serves
  window needs;         ///< haloed: which inputs an output needs

  /// Whether types know its extent: then plans may follow from it. One that run time knows has a name still.
  constexpr bool has_static_extent() const { return extent != dynamic && tag.size == 0; }

  /// How many elements are never split.
  constexpr index_t grain() const { return glued + 1; }
  constexpr void set_grain(index_t elements) { glued = elements - 1; }

  /// Holds each element once: drops what a window needed.
  constexpr void tile() {
    kind = cover::tiled;
    outputs = 0;
    needs = {};
  }

  /// Whether each element is in one part: a window of one tap that steps by one, over all of the dimension, gives each
  /// once.
  constexpr bool tiles() const {
    const window one_tap{1, needs.b, needs.b, 1};
    return kind == cover::tiled ||
           (needs == one_tap && needs.b <= 0 && extent != dynamic && outputs + needs.b >= extent);
  }

  /// Whether one part of all outputs has every element: a window that ends before the last one leaves some out.
  constexpr bool reaches_all() const {
    if (kind == cover::tiled || extent == 0) return true;
    if (extent == dynamic || outputs <= 0 || needs.unreached_before > 0 || needs.unreached_after > 0) return false;
    return needs.first(0) <= 0 && needs.last(outputs - 1) >= extent - 1;
  }

  /// Whether its windows lie end to end over all of it, as those of most poolings: then its parts are tiles.
  constexpr bool windows_are_tiles() const {
    const bool end_to_end = needs.a > 0 && needs == window{needs.a, 0, needs.a - 1, 1, 0, 0, needs.edge};
    return kind != cover::tiled && end_to_end && extent != dynamic && extent % needs.a == 0 &&
           extent / needs.a == outputs;
  }

  /// Keeps the elements [begin, begin + length) where they are, under their indices in the range.
  constexpr void narrow(index_t begin, index_t length) {
    if (kind == cover::tiled) {
      kind = cover::haloed;
      outputs = extent;
      needs = {1, 0, 0, 1};
    }
    needs.b -= begin * needs.c;
    needs.b2 -= begin * needs.c;
    needs.unreached_before = detail::larger(0, needs.unreached_before - begin);
    needs.unreached_after =
        extent == dynamic ? 0 : detail::larger(0, needs.unreached_after - (extent - begin - length));
    extent = length;
    if (needs == window{1, 0, 0, 1} && outputs == extent) tile();
  }

  /// Holds of a tiling what windows of n outputs need. Outputs that `keep` its parts lie as its elements do, be they a
  /// range of a longer dimension; others are cut evenly.
  constexpr void hold(const window& w, index_t n, bool keep) {
    const bool range = kind != cover::tiled;
    if (keep && range && engine::composes(w, needs, n, extent)) {
      needs = engine::composed(w, needs, n, extent);
      return;
    }
    if (!keep || range) balance(1);
    kind = cover::haloed;
    outputs = n;
    needs = w;
  }

  /// Cut into balanced parts, dealt in order, of units of a grain.
  constexpr void balance(index_t grain_elements) {
    set_grain(grain_elements);
    bounds = nullptr;
    turned = 0;
    zigzag = false;
  }

  /// Deals its parts as another dimension does, which the same axes cut.
  constexpr void deal_as(const dimension& other) {
    bounds = other.bounds;
    turned = other.turned;
    zigzag = other.zigzag;
  }

  /// Whether balanced parts are dealt in order: coordinate i holds part i, one interval.
  constexpr bool in_order() const { return bounds == nullptr && turned == 0 && !zigzag; }

  /// Into how many intervals its elements are cut for so many parts.
  constexpr index_t chunks(index_t parts) const { return zigzag ? 2 * parts : parts; }
};

/// The bounds of parts whose lengths are learned when a tensor is made of boxes: a type knows that there are some, not
/// which.
inline constexpr index_t learned[]{dynamic};

/// Two dimensions that the same axes cut into `parts` parts have the same intervals, be they copies or terms.
constexpr bool same_intervals(const dimension& p, const dimension& q, int parts) {
  if (p.extent != q.extent || p.turned != q.turned || p.zigzag != q.zigzag) return false;
  if ((p.kind == cover::tiled) != (q.kind == cover::tiled)) return false;
  if (p.kind != cover::tiled && (p.outputs != q.outputs || !(p.needs == q.needs))) return false;
  if ((p.bounds == nullptr) != (q.bounds == nullptr)) return false;
  if (p.bounds == q.bounds) return p.grain() == q.grain();
  if (p.bounds == learned || q.bounds == learned) return false;
  for (int i = 0; i <= parts; ++i)
    if (p.bounds[i] * p.grain() != q.bounds[i] * q.grain()) return false;
  return true;
}

}  // namespace engine

}  // namespace tessera
