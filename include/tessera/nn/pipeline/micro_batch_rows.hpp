#pragma once

#include <tessera/plan/cutting.hpp>
#include <tessera/plan/schedule/stages.hpp>

#include <algorithm>
#include <optional>
#include <vector>

namespace tessera::nn::engine {

/// The rows of a tensor that a micro-batch has: of each part of the first dimension a share of its own.
struct micro_batch_rows {
  layout lies;                 ///< of the micro-batch
  interval here;               ///< where this worker's lie in its box
  std::vector<interval> rows;  ///< of all workers, in the whole
};

/// The rows of one of so many micro-batches; none where its parts would not be cut by the tensor's own rule.
///
/// Part k has ⌊n/M⌋ of its n rows, and one more in the first n mod M micro-batches.
inline std::optional<micro_batch_rows> rows_of(const layout& whole, int rank, int micro_batch, int of) {
  const parts all(whole, 0);
  const auto begin = [&](index_t n, int m) { return n / of * m + std::min<index_t>(n % of, m); };
  micro_batch_rows found{whole, {}, {}};
  dimension& rows = found.lies.dims[0];
  rows.extent = 0;
  std::vector<index_t> shares;
  for (int k = 0; k < all.count(); ++k) {
    const intervals held = all.held(k);
    if (held.count != 1) return std::nullopt;
    const index_t n = held[0].size(), from = begin(n, micro_batch), to = begin(n, micro_batch + 1);
    shares.push_back(to - from);
    rows.extent += to - from;
    if (to > from) found.rows.push_back({held[0].lo + from, held[0].lo + to});
  }
  if (whole.dims[0].kind != cover::tiled || (whole.dims[0].bounds != nullptr && all.count() > 1)) return std::nullopt;
  const parts cut(found.lies, 0);
  for (int k = 0; k < all.count(); ++k)
    if (size_of(cut.held(k)) != shares[static_cast<std::size_t>(k)]) return std::nullopt;
  const index_t mine = size_of(held_by(whole, rank)[0]);
  found.here = {begin(mine, micro_batch), begin(mine, micro_batch + 1)};
  std::sort(found.rows.begin(), found.rows.end(), [](const interval& a, const interval& b) { return a.lo < b.lo; });
  std::vector<interval> joined;
  for (const interval& i : found.rows)
    if (!joined.empty() && joined.back().hi == i.lo) joined.back().hi = i.hi;
    else joined.push_back(i);
  found.rows = std::move(joined);
  return found;
}

/// How an output of a batch is made of those of its micro-batches.
enum class rows_join : signed char {
  in_turn,   ///< on each worker one behind the other, since it is cut as the batch is
  by_place,  ///< every worker has all rows, each where it is in the batch
  never
};

/// How they join, where rows of a batch that lies like this become so many rows of the output each.
inline rows_join join_of(const layout& whole, const layout& batch, const layout& of_micro_batch,
                         const layout& micro_batch) {
  const index_t rows = batch.dims[0].extent, times = rows > 0 ? whole.dims[0].extent / rows : 0;
  const auto cut_as = [times](const layout& y, const layout& x) {
    if (y.dims[0].extent != times * x.dims[0].extent || y.levels(0) != x.levels(0)) return false;
    for (int level = 0; level < y.levels(0); ++level)
      if (y.cutter(0, level) != x.cutter(0, level)) return false;
    const parts of_y(y, 0), of_x(x, 0);
    for (int k = 0; k < of_y.count(); ++k) {
      const intervals a = of_y.held(k), b = of_x.held(k);
      if (a.count != b.count) return false;
      for (int i = 0; i < a.count; ++i)
        if (a[i].lo != times * b[i].lo || a[i].hi != times * b[i].hi) return false;
    }
    return true;
  };
  const auto has_all = [times](const layout& y, const layout& x) {
    return y.part_count(0) == 1 && y.dims[0].tiles() && y.dims[0].extent == times * x.dims[0].extent;
  };
  if (has_all(whole, batch) && has_all(of_micro_batch, micro_batch)) return rows_join::by_place;
  return cut_as(whole, batch) && cut_as(of_micro_batch, micro_batch) ? rows_join::in_turn : rows_join::never;
}

}  // namespace tessera::nn::engine
