#pragma once

#include <tessera/operation/rule/stream_count.hpp>
#include <tessera/plan/reached_parts.hpp>

namespace tessera::engine {

/// Counts what comes to readers who take what they reach. Parts that are read as a whole are counted together, and so
/// are those of which one chunk of a zigzag is. So steps grow with the readers, not with pairs.
class reach_count {
 public:
  constexpr reach_count(const parts& read, const part_readers& readers, index_t rows)
      : read_(read),
        readers_(readers),
        rows_(rows),
        p_(read.count()),
        tiles_(read.of.zigzag ? 2 * p_ : p_),
        begins_(tiles_ + 1),
        given_(p_),
        changes_{list(p_ + 1), list(p_ + 1), list(p_ + 1)},
        chunks_{list(p_ + 1), list(p_ + 1), list(p_ + 1)} {
    const zigzag_deal dealt{read.of.extent, read.of.grain(), p_};
    for (int c = 0; c < tiles_; ++c) begins_[c] = read.of.zigzag ? dealt.chunk(c).lo : read.held(c)[0].lo;
    begins_[tiles_] = read.of.extent;
    for (int k = 0; k < p_; ++k)
      for (int s = 0; s < 3; ++s) {
        const index_t n = size_of_state(k, s);
        chunks_[s][k + 1] = chunks_[s][k] + detail::ceil_divide(n, rows_);
        most_[s] = detail::larger(most_[s], n);
      }
  }

  constexpr stream_count counted() {
    stream_count n;
    for (int k = 0; k < p_; ++k) count(k, n);
    index_t times[3]{};
    for (int k = 0; k < p_; ++k) {
      for (int s = 0; s < 3; ++s) {
        times[s] += changes_[s][k];
        given_[k] += times[s] * size_of_state(k, s);
      }
      n.owner = detail::larger(n.owner, given_[k]);
    }
    return n;
  }

 private:
  // So many numbers, for as long as it is counted.
  class list {
   public:
    constexpr explicit list(int n) : items_(new index_t[static_cast<std::size_t>(n)]()) {}
    constexpr ~list() { delete[] items_; }
    list(const list&) = delete;
    list& operator=(const list&) = delete;
    constexpr index_t& operator[](int i) { return items_[i]; }
    constexpr const index_t& operator[](int i) const { return items_[i]; }

   private:
    index_t* items_;
  };
  // What is read of a part: its first chunk, its last one, both. A part in one piece is its first chunk.
  constexpr index_t size_of_state(int k, int state) const {
    const int last = tiles_ - 1 - k;
    const index_t first = begins_[k + 1] - begins_[k];
    const index_t second = read_.of.zigzag ? begins_[last + 1] - begins_[last] : 0;
    return (state != 1 ? first : 0) + (state != 0 ? second : 0);
  }

  // The first tile that ends behind an element.
  constexpr int tile_of(index_t x) const {
    int lo = 0;
    for (int hi = tiles_ - 1; lo < hi;) {
      const int middle = lo + (hi - lo) / 2;
      if (begins_[middle + 1] > x) hi = middle;
      else lo = middle + 1;
    }
    return lo;
  }

  // Where what is read of parts changes, ascending.
  using marks = static_vector<int, 32>;
  constexpr void mark(marks& all, int k) const {
    if (k <= 0 || k >= p_) return;
    int i = all.count;
    while (i > 0 && all[i - 1] > k) --i;
    if (i > 0 && all[i - 1] == k) return;
    all.push(k);
    for (int j = all.count - 1; j > i; --j) all[j] = all[j - 1];
    all[i] = k;
  }
  constexpr void mark_tiles(marks& all, int first, int last) const {
    mark(all, first);
    mark(all, last);
    if (!read_.of.zigzag) return;
    mark(all, tiles_ - last);
    mark(all, tiles_ - first);
  }

  struct two_largest {
    index_t first = 0, second = 0;

    constexpr void add(index_t chunk) {
      second = detail::larger(second, detail::smaller(first, chunk));
      first = detail::larger(first, chunk);
    }
  };

  constexpr void count(int reader, stream_count& n) {
    const intervals reads = readers_.of(reader);
    marks all;
    all.push(0);
    mark(all, reader);
    mark(all, reader + 1);
    static_vector<part_range, 2> whole;  // tiles
    index_t comes = -size_of(read_of(read_.held(reader), reads));
    for (const interval& one : reads) {
      comes += one.size();
      const int first = tile_of(one.lo), last = tile_of(one.hi - 1);
      mark_tiles(all, first, first + 1);
      mark_tiles(all, last, last + 1);
      const part_range inside{first + (begins_[first] < one.lo), last + 1 - (begins_[last + 1] > one.hi)};
      if (inside.first < inside.last) whole.push(inside);
    }
    two_largest chunks;
    for (int i = 0; i < all.count; ++i) {
      const int from = all[i], to = i + 1 < all.count ? all[i + 1] : p_;
      if (to - from > 1) add_whole(from, to, whole, chunks, n);
      else if (from != reader) add_one(from, reads, chunks, n);
    }
    n.total += comes;
    n.reader = detail::larger(n.reader, comes);
    n.largest = detail::larger(n.largest, chunks.first);
    n.two = detail::larger(n.two, chunks.first + chunks.second);
  }

  constexpr void add_one(int k, const intervals& reads, two_largest& chunks, stream_count& n) {
    const row_intervals taken = read_of(read_.held(k), reads);
    const index_t rows = size_of(taken);
    if (rows == 0) return;
    given_[k] += rows;
    n.chunks += detail::ceil_divide(rows, rows_);
    const index_t chunk = detail::smaller(rows, rows_);
    chunks.add(chunk);
    if (rows > rows_) chunks.add(detail::smaller(rows_, rows - rows_));
    if (taken.count > 1) n.copied = detail::larger(n.copied, chunk);
  }
  // Parts of which all the same is read.
  constexpr void add_whole(int from, int to, const static_vector<part_range, 2>& whole, two_largest& chunks,
                           stream_count& n) {
    bool first = false, second = false;
    for (const part_range& r : whole) {
      first = first || (from >= r.first && from < r.last);
      second = second || (read_.of.zigzag && tiles_ - 1 - from >= r.first && tiles_ - 1 - from < r.last);
    }
    if (!first && !second) return;
    const int state = first && second ? 2 : second ? 1 : 0;
    n.chunks += chunks_[state][to] - chunks_[state][from];
    changes_[state][from] += 1;
    changes_[state][to] -= 1;
    for (int i = 0; i < 2; ++i) chunks.add(detail::smaller(most_[state], rows_));
  }

  parts read_;
  part_readers readers_;
  index_t rows_;
  int p_, tiles_;
  list begins_;                  // of tiles: parts, or chunks of a zigzag
  list given_;                   // rows, by owners
  list changes_[3], chunks_[3];  // of each state: how many read so, from a part on; chunks of the parts before
  index_t most_[3]{};            // rows of a part
};

}  // namespace tessera::engine
