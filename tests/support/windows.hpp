#pragma once
// Rolled windows of poolings, and lists of their numbers as LibTorch takes them.

#include "tests/support/layers.hpp"

#include <vector>

namespace tessera::testing {

using namespace engine;

inline static_vector<index_t, max_dimensions> extents(std::initializer_list<index_t> list) {
  static_vector<index_t, max_dimensions> e;
  for (index_t n : list) e.push(n);
  return e;
}

inline std::vector<index_t> each_of(const static_vector<sliding, 8>& kernels, index_t sliding::* what) {
  std::vector<index_t> all;
  for (const sliding& s : kernels) all.push_back(s.*what);
  return all;
}

inline pooling roll_pool(dice& d, pooling::kind what, int dims) {
  pooling p;
  p.is = what;
  p.ceil_mode = d.once_in(2);
  p.counts_padding = d.once_in(2);
  if (what == pooling::kind::average && dims > 1 && d.once_in(4)) p.divisor = d.roll(1, 5);
  for (int i = 0; i < dims; ++i) {
    const int k = d.roll(1, 4);
    const int pad = d.roll(0, k / 2);
    p.kernels.push({k, d.roll(1, 3), pad, pad, what == pooling::kind::max ? d.roll(1, 2) : 1});
  }
  return p;
}

}  // namespace tessera::testing
