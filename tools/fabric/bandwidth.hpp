#pragma once
// What nccl-tests counts of a verb beside its time.

#include "ways.hpp"

#include <algorithm>

namespace tessera::fabric {

using namespace engine;

/// Elements of algorithm bandwidth: what the worker that has most has before or gets; of a halo what the busiest
/// receives, as of sends and receives.
inline index_t algorithm_elements(const way& w) {
  if (w.is == verb::halo_exchange) return cost_between(w.from, w.to).busiest;
  index_t most = 0;
  for (int r = 0; r < w.from.mesh.size(); ++r)
    most = std::max({most, cutting(w.from).elements_of(r), cutting(w.to).elements_of(r)});
  return most;
}

/// Elements of bus bandwidth: 2(n − 1)/n of the tensor for an all_reduce, (n − 1)/n for an all_gather, a reduce_scatter
/// and a worker's part of an all_to_all, all of it for a broadcast. That is what the busiest worker receives. Only a
/// sum on one worker counts as if each handed a sum on to the next.
inline index_t bus_elements(const way& w) {
  return w.is == verb::sum_reduce ? algorithm_elements(w) : cost_between(w.from, w.to).busiest;
}

}  // namespace tessera::fabric
