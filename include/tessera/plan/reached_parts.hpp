#pragma once

#include <tessera/plan/parts.hpp>

namespace tessera::engine {

/// Rows of a part, by their places in it or by their indices: what two intervals read of two.
using row_intervals = static_vector<interval, 4>;

constexpr index_t size_of(const row_intervals& rows) {
  index_t n = 0;
  for (const interval& i : rows) n += i.size();
  return n;
}

/// Appends rows, to the last ones where they lie side by side.
constexpr void append(row_intervals& all, const interval& more) {
  if (more.empty()) return;
  if (all.count > 0 && all[all.count - 1].hi == more.lo) all[all.count - 1].hi = more.hi;
  else all.push(more);
}

/// The rows of parts, given by their places, that have the places [lo, hi) among these.
constexpr row_intervals among(const row_intervals& rows, index_t lo, index_t hi) {
  row_intervals some;
  index_t at = 0;
  for (const interval& i : rows) {
    const interval here = overlap({lo, hi}, {at, at + i.size()});
    if (!here.empty()) append(some, {i.lo + here.lo - at, i.lo + here.hi - at});
    at += i.size();
  }
  return some;
}

/// The rows of a part that are read, by their places in it; both lists ascend.
constexpr row_intervals read_of(const intervals& part, const intervals& reads) {
  row_intervals all;
  index_t at = 0;
  for (const interval& held : part) {
    for (const interval& one : reads) {
      const interval both = overlap(held, one);
      if (!both.empty()) append(all, {at + both.lo - held.lo, at + both.hi - held.lo});
    }
    at += held.size();
  }
  return all;
}

/// Which rows a worker reads of a cut dimension whose indices i read [i − before, i + after].
///
/// A reader is named by the part that its coordinates hold of what is read. Where an axis cuts the readers alone, those
/// along it read as one interval.
class part_readers {
 public:
  constexpr part_readers(const parts& read, const layout& x, int dim, index_t before, index_t after)
      : read_(read),
        readers_(x, dim),
        before_(detail::smaller(before, read.of.extent)),
        after_(detail::smaller(after, read.of.extent)) {
    at_.resize(x.mesh.axes.count);
    for (int l = 0; l < readers_.axes.count; ++l) {
      bool shared = false;
      for (int a : read_.axes) shared = shared || a == readers_.axes[l];
      if (!shared) others_.push(l);
    }
  }

  /// What is read by who holds this part, in order.
  constexpr intervals of(int part) const {
    coordinates at = at_;
    read_.locate(part, at);
    int count = 1;
    for (int l : others_) count *= readers_.extents[l];
    intervals all;
    for (int n = 0; n < count; ++n) {
      int rest = n;
      for (int l : others_) {
        at[readers_.axes[l]] = rest % readers_.extents[l];
        rest /= readers_.extents[l];
      }
      for (const interval& i : readers_.held(readers_.at(at))) add(all, i, count > 1);
    }
    return all;
  }

 private:
  constexpr void add(intervals& all, const interval& i, bool as_one) const {
    if (i.empty()) return;
    const interval reads{detail::larger(0, i.lo - before_), detail::smaller(read_.of.extent, i.hi + after_)};
    if (all.count > 0 && (as_one || reads.lo <= all[all.count - 1].hi)) {
      interval& last = all[all.count - 1];
      last = {detail::smaller(last.lo, reads.lo), detail::larger(last.hi, reads.hi)};
    } else {
      all.push(reads);
    }
  }

  parts read_, readers_;
  index_t before_, after_;
  coordinates at_;
  static_vector<int, max_axes> others_;  // levels of the readers' cut
};

}  // namespace tessera::engine
