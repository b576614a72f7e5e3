#pragma once

#include <tessera/nn/kernel/dropped_weights.hpp>
#include <tessera/operation/layer/layer_options.hpp>
#include <tessera/operation/plan/attended_keys.hpp>

#include <algorithm>
#include <functional>
#include <memory>
#include <vector>

namespace tessera::nn::engine {

using tessera::engine::attention_form;

/// Queries and keys that meet at once, by their places on this worker and in a piece.
struct attended_block {
  enum class shape : signed char { all, diagonal, band };

  interval rows, keys;
  shape sees = shape::all;  ///< all keys, those up to a query's own place in a square, or those that its window has
  interval queries;         ///< the places of the rows in the whole sequence
  index_t first_key = 0;    ///< the place of the first key in it
};

/// The queries of a worker, as a step of attention meets them: of these global indices, of heads of which each key
/// serves `each`.
struct attended_queries {
  std::vector<interval> rows;
  index_t each = 1;
  bool masked = false;             ///< a mask comes behind the values
  index_t split = 0;               ///< into so many heads the features of keys and values are still to be split here
  attention_form form;             ///< whose places say what a query sees
  std::vector<index_t> sequences;  ///< where packed sequences begin and the last one ends; none where all is one
  std::shared_ptr<const dropped_weights> drops;  ///< none where all weights count

  /// How much is met at once: keys, and queries whose keys differ by their places.
  struct limits {
    index_t keys, rows;
  };
  /// Calls f with blocks of what queries see of the keys [a, b), each pair once.
  void each_block(const interval& keys, const limits& most, const std::function<void(const attended_block&)>& f) const {
    for (index_t first = keys.lo; first < keys.hi; first += most.keys) {
      const interval some{first, std::min(keys.hi, first + most.keys)};
      index_t at = 0;
      for (const interval& row : rows) {
        const index_t here = at - row.lo;
        at += row.size();
        each_sequence(row, some, [&](const interval& queries, const interval& seen) {
          blocks_of(queries, seen, most.rows, [&](const interval& r, const interval& k, attended_block::shape sees) {
            if (r.empty() || k.empty()) return;
            f({{here + r.lo, here + r.hi}, {k.lo - keys.lo, k.hi - keys.lo}, sees, r, k.lo});
          });
        });
      }
    }
  }

 private:
  using found = std::function<void(const interval& rows, const interval& keys, attended_block::shape)>;

  /// What both have of a sequence.
  void each_sequence(const interval& row, const interval& keys,
                     const std::function<void(const interval&, const interval&)>& f) const {
    if (sequences.empty()) return f(row, keys);
    const auto common = [](const interval& a, index_t lo, index_t hi) {
      return interval{std::max(a.lo, lo), std::min(a.hi, hi)};
    };
    for (std::size_t i = 0; i + 1 < sequences.size(); ++i) {
      const interval r = common(row, sequences[i], sequences[i + 1]), k = common(keys, sequences[i], sequences[i + 1]);
      if (!r.empty() && !k.empty()) f(r, k);
    }
  }

  /// Blocks by global indices.
  void blocks_of(const interval& r, const interval& k, index_t most, const found& f) const {
    using shape = attended_block::shape;
    if (form.slides) return bands_of(r, k, most, f);
    if (!form.causal) return f(r, k, shape::all);
    f(r, {k.lo, std::min(k.hi, r.lo)}, shape::all);  // before all of them
    const index_t lo = std::max(k.lo, r.lo), hi = std::min(k.hi, r.hi);
    for (index_t from = lo; from < hi; from += most) {
      const index_t to = std::min(hi, from + most);
      f({from, to}, {lo, from}, shape::all);
      f({from, to}, {from, to}, shape::diagonal);
    }
    f({std::max(lo, hi), r.hi}, {lo, k.hi}, shape::all);  // what comes behind these keys
  }

  /// A strip of queries sees what all of them see, and on both sides of it what some of them do.
  void bands_of(const interval& r, const interval& k, index_t most, const found& f) const {
    using shape = attended_block::shape;
    const index_t step = std::min<index_t>(most, 1024);  // the mask of a band is held
    for (index_t from = r.lo; from < r.hi; from += step) {
      const interval strip{from, std::min(r.hi, from + step)};
      const index_t last = strip.hi - 1;
      const auto within = [&](index_t i) { return std::min(std::max(i, k.lo), k.hi); };
      const auto behind = [&](index_t i) { return within(tessera::detail::capped_sum(i + 1, form.after)); };
      const index_t lo = within(from - form.before), hi = std::max(lo, behind(last));
      const index_t all = within(last - form.before), end = behind(from);
      if (all >= end) {
        f(strip, {lo, hi}, shape::band);
        continue;
      }
      f(strip, {lo, all}, shape::band);
      f(strip, {all, end}, shape::all);
      f(strip, {end, hi}, shape::band);
    }
  }
};

}  // namespace tessera::nn::engine
