#pragma once

#include <tessera/operation/rule/stream_reach.hpp>
#include <tessera/plan/reached_parts.hpp>

#include <optional>
#include <vector>

namespace tessera::engine {

/// The parts of a cut dimension in the order in which a worker meets them: its own, then that of the next one.
///
/// At turn t coordinate i meets part i + t: all of its own, and of another one what i reads of it. Chunk c of n such
/// rows are those at [c·rows, min((c + 1)·rows, n)). At a turn all have as many chunks as the one that reads most; the
/// last ones of others are empty.
class stream_parts {
 public:
  stream_parts(const layout& x, int dim, index_t rows) : lies_(x), dim_(dim), parts_(x, dim) {
    index_t longest = 0;
    for (int k = 0; k < parts_.count(); ++k) {
      held_.push_back(parts_.held(k));
      longest = detail::larger(longest, size_of(held_.back()));
    }
    rows_ = detail::larger(1, detail::smaller(rows, longest));
    chunks_.assign(held_.size(), static_cast<int>(detail::ceil_divide(longest, rows_)));
  }
  /// The same where readers lie as another tensor does.
  stream_parts(const layout& x, int dim, index_t rows, const layout& readers, const stream_reach& reach)
      : stream_parts(x, dim, rows) {
    if (!reach.limited()) return;
    const part_readers who(parts_, readers, reach.dim, reach.before, reach.after);
    for (int k = 0; k < turns(); ++k) reads_.push_back(who.of(k));
    for (int turn = 1; turn < turns(); ++turn) {
      index_t most = 0;
      for (int k = 0; k < turns(); ++k) most = detail::larger(most, size_of(read(k, turn)));
      chunks_[static_cast<std::size_t>(turn)] = static_cast<int>(detail::ceil_divide(most, rows_));
    }
  }

  int turns() const { return parts_.count(); }
  int chunks(int turn) const { return chunks_[static_cast<std::size_t>(turn)]; }
  index_t extent() const { return lies_.dims[dim_].extent; }

  /// The part that coordinates meet at a turn.
  int met(const coordinates& at, int turn) const { return (parts_.at(at) + turn) % turns(); }

  /// The rows of a chunk of a part, by their places in it, which is met at a turn.
  row_intervals places(int part, int turn, int chunk) const {
    return among(read(part, turn), chunk * rows_, (chunk + 1) * rows_);
  }
  /// The same by their indices in the whole dimension, in the order of their places.
  row_intervals indices(int part, int turn, int chunk) const {
    const intervals& held = held_[static_cast<std::size_t>(part)];
    row_intervals all;
    for (const interval& taken : places(part, turn, chunk)) {
      index_t at = 0;
      for (const interval& i : held) {
        const interval here = overlap(taken, {at, at + i.size()});
        if (!here.empty()) append(all, {i.lo + here.lo - at, i.lo + here.hi - at});
        at += i.size();
      }
    }
    return all;
  }

  /// The chunks of a turn as a tensor of their own: each at the owner of its part, or where it is met. What it points
  /// to lives as long as this, until it is asked again.
  layout at(int turn, int chunk, bool met) {
    layout x = lies_;
    dimension& d = x.dims[dim_];
    d.balance(1);
    bounds_.assign(1, 0);
    bool even = true;
    for (int k = 0; k < turns(); ++k) {
      const index_t n = size_of(places(k, turn, chunk));
      bounds_.push_back(bounds_.back() + n);
      even = even && n == bounds_[1];
    }
    d.tile();
    d.extent = bounds_.back();
    d.tag = {};
    if (!even) d.bounds = bounds_.data();
    d.turned = (parts_.of.turned + (met ? turn : 0)) % turns();
    return x;
  }

 private:
  // What is read of a part at a turn, by places.
  row_intervals read(int part, int turn) const {
    const intervals& held = held_[static_cast<std::size_t>(part)];
    if (turn > 0 && !reads_.empty())
      return read_of(held, reads_[static_cast<std::size_t>((part + turns() - turn) % turns())]);
    return {{{0, size_of(held)}}, 1};
  }

  layout lies_;
  int dim_;
  parts parts_;
  std::vector<intervals> held_;
  std::vector<intervals> reads_;  // by those who hold a part; none where all read all
  std::vector<index_t> bounds_;
  std::vector<int> chunks_;  // of each turn
  index_t rows_ = 1;
};

}  // namespace tessera::engine
