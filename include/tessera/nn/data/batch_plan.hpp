#pragma once

#include <tessera/plan/cutting.hpp>

namespace tessera::nn::engine {

/// The positions of an epoch's order that make up its batches.
struct batch_plan {
  index_t samples = 0;
  index_t batch = 1;       ///< samples of a step, over all workers
  bool drop_last = false;  ///< an uneven last batch is left out

  /// Steps of an epoch: ⌈samples / batch⌉, or ⌊samples / batch⌋ where the last uneven batch is left out.
  constexpr index_t steps() const { return samples / batch + (!drop_last && samples % batch > 0); }

  /// The batch that begins at a position, [begin, min(begin + batch, samples)); empty where no more is given.
  constexpr interval from(index_t begin) const {
    const index_t left = begin < samples ? samples - begin : 0;
    if (left < batch) return {begin, begin + (drop_last ? 0 : left)};
    return {begin, begin + batch};
  }

  /// The batch of a step of [0, steps()).
  constexpr interval of_step(index_t step) const { return from(step * batch); }
};

/// How a batch of `samples` lies, where a batch of any number lies like x: dimension 0 is the samples'.
constexpr layout batch_layout(layout x, index_t samples) {
  x.dims[0].extent = samples;
  return x;
}

/// The positions of a batch that a worker reads: its part of dimension 0 of a tensor that lies like x.
constexpr intervals positions_of(const interval& batch, const layout& x, int rank) {
  intervals mine = held_by(batch_layout(x, batch.size()), rank)[0];
  for (interval& one : mine) one = {batch.lo + one.lo, batch.lo + one.hi};
  return mine;
}

}  // namespace tessera::nn::engine
