#pragma once

#include <tessera/operation/memory/layer_memory.hpp>
#include <tessera/operation/memory/numbered.hpp>

namespace tessera::detail {

/// The memory alive in a simulated run of a program: boxes of values by their holders, gradients, and all else by its
/// bytes.
template <int Values>
class memory_ledger {
 protected:
  // Of so many values, none of which has a gradient.
  constexpr void open(int count) {
    count_ = count;
    make_room(count, bytes_, stored_, holders_, gradient_, gradient_holders_, gradient_bytes_);
    for (int v = 0; v < count; ++v) gradient_[v] = -1;
  }
  constexpr void add(index_t bytes) {
    live_ = capped_sum(live_, bytes);
    reach(0);
  }
  constexpr void remove(index_t bytes) { live_ = capped_difference(live_, bytes); }
  constexpr void reach(index_t more) {
    const index_t reached = capped_sum(live_, more);
    peak_ = larger(peak_, reached);
    *now_ = larger(*now_, reached);
  }
  constexpr void hold(int root) {
    if (holders_[root]++ == 0) add(stored_[root]);
  }
  constexpr void let_go(int root) {
    if (--holders_[root] == 0) remove(stored_[root]);
  }

  // The gradient of a value is held under the number of the value that it was made for.
  constexpr void drop_gradient(int v) {
    const int held = gradient_[v];
    if (held < 0 || held == count_) return;
    gradient_[v] = -1;
    if (--gradient_holders_[held] == 0) remove(gradient_bytes_[held]);
  }

  // A gradient comes to a value, a box of its own or one that others hold too; a second one is added to the first.
  constexpr void arrive(int v, index_t bytes, int passed) {
    if (gradient_[v] >= 0) {
      const int held = gradient_[v];
      const bool shared = held == count_ || gradient_holders_[held] > 1;
      if (shared) reach(bytes_[v]);
      if (!shared || bytes == 0) {
        remove(bytes);
        return;
      }
      drop_gradient(v);  // the sum is as large as what came
    }
    gradient_[v] = bytes == 0 && passed >= 0 ? passed : v;
    if (gradient_[v] == count_) return;
    if (gradient_[v] == v) gradient_bytes_[v] = bytes;
    ++gradient_holders_[gradient_[v]];
  }

  int count_ = 0;
  index_t live_ = 0;
  index_t peak_ = 0;
  index_t* now_ = &peak_;
  numbered<index_t, Values> bytes_{};   // of its box, and of its gradient's
  numbered<index_t, Values> stored_{};  // of what the box is a view of
  numbered<int, Values> holders_{};
  numbered<int, Values> gradient_{};
  numbered<int, Values> gradient_holders_{};
  numbered<index_t, Values> gradient_bytes_{};
};

}  // namespace tessera::detail
