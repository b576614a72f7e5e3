#pragma once

#include <tessera/plan/parts.hpp>

namespace tessera::engine {

/// How many rows of a stream come along one line of the workers that its parts lie on, and in how large chunks.
struct stream_count {
  index_t total = 0;    ///< rows that come to all
  index_t reader = 0;   ///< to the worker to whom most come
  index_t owner = 0;    ///< rows of terms, to the worker to whom most go
  index_t chunks = 0;   ///< that come to all, but for empty ones
  index_t largest = 0;  ///< rows of a chunk
  index_t two = 0;      ///< of two chunks that come to one worker
  index_t copied = 0;   ///< of a chunk whose rows lie apart at their owner
};

/// The count where each reads all parts, in chunks of so many rows.
constexpr stream_count read_by_all(const parts& read, index_t rows) {
  stream_count n;
  index_t least = read.of.extent;
  for (int k = 0; k < read.count(); ++k) {
    const index_t held = size_of(read.held(k));
    least = detail::smaller(least, held);
    n.chunks += detail::ceil_divide(held, rows) * (read.count() - 1);
  }
  const index_t longest = read.largest();
  n.total = detail::capped_product(read.of.extent, read.count() - 1);
  n.reader = read.of.extent - least;
  n.owner = detail::capped_product(longest, read.count() - 1);
  n.largest = detail::smaller(longest, rows);
  n.two = (read.count() > 2 || longest > rows ? 2 : 1) * n.largest;
  return n;
}

}  // namespace tessera::engine
