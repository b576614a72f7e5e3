#pragma once

#include <tessera/plan/cutting.hpp>

#include <algorithm>
#include <cstdint>

namespace tessera::detail {

using global_index = static_vector<index_t, max_dimensions>;

inline global_index all_extents(const layout& x) {
  global_index all;
  for (const dimension& d : x.dims) all.push(d.extent);
  return all;
}

/// This worker's box of a tensor as runs of elements that are neighbours in the whole as well.
class box_runs {
 public:
  box_runs(const layout& x, int rank) : box_runs(held_by(x, rank), all_extents(x)) {}
  box_runs(const holding& held, const global_index& extents) : held_(held) {
    behind_.resize(held_.count);
    for (int d = held_.count - 1; d >= 0; --d) behind_[d] = d + 1 < held_.count ? behind_[d + 1] * extents[d + 1] : 1;
    row_ = held_.count - 1;
    while (row_ > 0 && held_[row_].count == 1 && held_[row_][0] == interval{0, extents[row_]}) --row_;
    if (row_ < 0) return;
    if (held_[row_].count == 0) length_ = 0;
    else length_ = size_of(held_[row_]) * behind_[row_];
  }

  /// Calls run(first, n, position) for elements [begin, end) of the box: n of them from one on, which is at this
  /// position of the whole.
  template <class Run>
  void each(index_t begin, index_t end, const Run& run) const {
    if (row_ < 0 && begin < end) run(index_t{0}, index_t{1}, std::uint64_t{0});
    if (row_ < 0 || length_ == 0) return;
    global_index at;
    at.resize(row_);
    index_t line = begin / length_;
    for (int d = row_ - 1; d >= 0; --d) {
      at[d] = line % size_of(held_[d]);
      line /= size_of(held_[d]);
    }
    for (index_t first = begin - begin % length_; first < end; first += length_) {
      index_t position = 0;
      for (int d = 0; d < row_; ++d) position += element_at(held_[d], at[d]) * behind_[d];
      index_t before = first;
      for (const interval& part : held_[row_]) {
        const index_t from = std::max(begin, before), to = std::min(end, before + part.size() * behind_[row_]);
        if (from < to)
          run(from, to - from, static_cast<std::uint64_t>(position + part.lo * behind_[row_] + from - before));
        before += part.size() * behind_[row_];
      }
      for (int d = row_ - 1; d >= 0 && ++at[d] == size_of(held_[d]); --d) at[d] = 0;
    }
  }

  const holding& held() const { return held_; }
  index_t behind(int d) const { return behind_[d]; }  ///< how many elements of the whole one of a dimension stands for

 private:
  holding held_;
  global_index behind_;
  int row_ = 0;         // the dimension of which a run has several elements
  index_t length_ = 0;  // of what lies in it and those behind
};

}  // namespace tessera::detail
