#pragma once

#include <tessera/plan/parts.hpp>

#include <vector>

namespace tessera::engine {

/// The parts of a cut dimension in the order in which a worker meets them: its own, then that of the next one.
///
/// At turn t coordinate i meets part i + t. Chunk c of a part of n elements is its elements [c·rows, min((c + 1)·rows,
/// n)). All parts have as many chunks as the longest; the last ones of others are empty.
class stream_parts {
 public:
  stream_parts(const layout& x, int dim, index_t rows) : lies_(x), dim_(dim), parts_(x, dim) {
    index_t longest = 0;
    for (int k = 0; k < parts_.count(); ++k) {
      held_.push_back(parts_.held(k));
      longest = detail::larger(longest, size_of(held_[static_cast<std::size_t>(k)]));
    }
    rows_ = detail::larger(1, detail::smaller(rows, longest));
    chunks_ = static_cast<int>(detail::ceil_divide(longest, rows_));
  }

  int turns() const { return parts_.count(); }
  int chunks() const { return chunks_; }
  index_t extent() const { return lies_.dims[dim_].extent; }

  /// The part that coordinates meet at a turn.
  int met(const coordinates& at, int turn) const { return (parts_.at(at) + turn) % turns(); }

  /// The elements of a chunk of a part, by their places in it.
  interval places(int part, int chunk) const {
    const index_t n = size_of(held_[static_cast<std::size_t>(part)]);
    const index_t lo = detail::smaller(n, chunk * rows_);
    return {lo, detail::smaller(n, lo + rows_)};
  }
  /// The same by their indices in the whole dimension, in the order of their places.
  intervals indices(int part, int chunk) const {
    const interval taken = places(part, chunk);
    intervals all;
    index_t at = 0;
    for (const interval& i : held_[static_cast<std::size_t>(part)]) {
      const interval here = overlap(taken, {at, at + i.size()});
      if (!here.empty()) all.push({i.lo + here.lo - at, i.lo + here.hi - at});
      at += i.size();
    }
    return all;
  }

  /// The chunks of all parts as a tensor of their own, each where its part is met at a turn. What it points to lives as
  /// long as this, until it is asked again.
  layout at(int turn, int chunk) {
    layout x = lies_;
    dimension& d = x.dims[dim_];
    d.balance(1);
    bounds_.assign(1, 0);
    bool even = true;
    for (int k = 0; k < turns(); ++k) {
      bounds_.push_back(bounds_.back() + places(k, chunk).size());
      even = even && places(k, chunk).size() == places(0, chunk).size();
    }
    d.tile();
    d.extent = bounds_.back();
    d.tag = {};
    if (!even) d.bounds = bounds_.data();
    d.turned = (parts_.of.turned + turn) % turns();
    return x;
  }

 private:
  layout lies_;
  int dim_;
  parts parts_;
  std::vector<intervals> held_;
  std::vector<index_t> bounds_;
  index_t rows_ = 1;
  int chunks_ = 0;
};

}  // namespace tessera::engine
