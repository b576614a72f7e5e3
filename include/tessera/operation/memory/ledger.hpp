#pragma once

#include <tessera/operation/memory/layer_memory.hpp>

namespace tessera::detail {

/// The memory alive in a simulated run of a program: boxes of values by their holders, gradients, and all else by its
/// bytes.
template <int Values>
class memory_ledger {
 protected:
  constexpr void add(index_t bytes) {
    live_ = capped_sum(live_, bytes);
    reach(0);
  }
  constexpr void remove(index_t bytes) { live_ -= bytes; }
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
  index_t bytes_[Values + 1]{};   // of its box, and of its gradient's
  index_t stored_[Values + 1]{};  // of what the box is a view of
  int holders_[Values + 1]{};
  int gradient_[Values + 1]{};
  int gradient_holders_[Values + 1]{};
  index_t gradient_bytes_[Values + 1]{};
};

}  // namespace tessera::detail
