#pragma once

#include <tessera/plan/interval.hpp>

#include <vector>

namespace tessera::nn::engine {

using tessera::engine::interval;

/// The rows of a sum that no term was written to yet: the first one is copied there, and all others are added.
class unwritten_rows {
 public:
  unwritten_rows(index_t rows, bool fresh) {
    if (fresh && rows > 0) left_.push_back({0, rows});
  }

  /// Calls f(some, first) with parts of these rows, in order; they are written then.
  template <class F>
  void write(const interval& rows, const F& f) {
    std::vector<interval> left;
    index_t at = rows.lo;
    for (const interval& i : left_) {
      const interval first = overlap(i, rows);
      if (first.empty()) {
        left.push_back(i);
        continue;
      }
      if (at < first.lo) f(interval{at, first.lo}, false);
      f(first, true);
      at = first.hi;
      if (i.lo < first.lo) left.push_back({i.lo, first.lo});
      if (first.hi < i.hi) left.push_back({first.hi, i.hi});
    }
    if (at < rows.hi) f(interval{at, rows.hi}, false);
    left_ = std::move(left);
  }
  const std::vector<interval>& left() const { return left_; }

 private:
  std::vector<interval> left_;  // ascending
};

}  // namespace tessera::nn::engine
