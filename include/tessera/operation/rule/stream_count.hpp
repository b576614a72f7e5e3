#pragma once

#include <tessera/operation/rule/stream_reach.hpp>
#include <tessera/plan/reached_parts.hpp>

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
constexpr stream_count counted(const parts& read, index_t rows) {
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

/// The count where readers take what they reach.
constexpr stream_count counted(const parts& read, const part_readers& readers, index_t rows) {
  const int p = read.count();
  index_t* const given = new index_t[static_cast<std::size_t>(p)]();  // by owners
  stream_count n;
  for (int reader = 0; reader < p; ++reader) {
    const intervals reads = readers.of(reader);
    index_t comes = 0, first = 0, second = 0;  // the two largest chunks
    const auto meet = [&](int k) {
      const row_intervals taken = read_of(read.held(k), reads);
      const index_t all = size_of(taken);
      if (k == reader || all == 0) return;
      comes += all;
      given[k] += all;
      n.chunks += detail::ceil_divide(all, rows);
      const index_t chunk = detail::smaller(all, rows);
      second = detail::larger(second, detail::smaller(first, chunk));
      if (all > rows) second = detail::larger(second, detail::smaller(chunk, all - rows));
      first = detail::larger(first, chunk);
      if (taken.count > 1) n.copied = detail::larger(n.copied, chunk);
    };
    parts::ranges met;
    for (const interval& one : reads) {
      const parts::ranges near = read.touching(one);
      for (const part_range& r : near)
        for (int k = r.first; k < r.last; ++k) {
          bool before = false;  // with the first interval
          for (const part_range& earlier : met) before = before || (k >= earlier.first && k < earlier.last);
          if (!before) meet(k);
        }
      met = near;
    }
    n.total += comes;
    n.reader = detail::larger(n.reader, comes);
    n.largest = detail::larger(n.largest, first);
    n.two = detail::larger(n.two, first + second);
  }
  for (int k = 0; k < p; ++k) n.owner = detail::larger(n.owner, given[k]);
  delete[] given;
  return n;
}

}  // namespace tessera::engine
