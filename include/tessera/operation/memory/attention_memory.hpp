#pragma once

#include <tessera/operation/memory/bytes_held.hpp>
#include <tessera/operation/plan/layer_plan.hpp>

namespace tessera::detail {

/// What attention takes on its way, in bytes, besides its operands, its results and the logarithms of their weights.
struct attention_memory {
  index_t there = 0;  ///< forward
  index_t back = 0;   ///< backward
};

/// The sizes of attention on one worker, and of the blocks in which it meets its keys.
struct attention_sizes {
  index_t queries, keys;                              ///< of the sequence
  index_t rows;                                       ///< queries of a block
  index_t seen;                                       ///< keys that these see
  index_t all;                                        ///< queries of all samples and heads
  index_t each;                                       ///< queries that read the same key
  index_t samples = 1;                                ///< and of what else comes before the sequence
  index_t of_queries, of_keys, of_values, of_result;  ///< bytes; keys and values once for each query that reads them

  constexpr attention_sizes(const layer_plan& p, element e) {
    const engine::attended_keys& a = p.saves.attends;
    const layout &q = p.used(0), &k = p.used(1);
    queries = larger(1, parts(q, a.sequence).largest());
    keys = larger(1, parts(k, a.sequence).largest());
    rows = a.by_place ? smaller(queries, engine::queries_of_block) : queries;
    seen = a.reach < 0 ? keys : smaller(keys, a.reach + rows);
    all = bytes_held(p.made(0), element::boolean);
    each = q.dims.count == a.sequence + 4 ? larger(1, parts(q, a.sequence + 2).largest()) : 1;
    for (int d = 0; d < a.sequence; ++d) samples = capped_product(samples, parts(q, d).largest());
    of_queries = bytes_held(q, e);
    of_keys = capped_product(each, bytes_held(k, e));
    of_values = capped_product(each, bytes_held(p.used(2), e));
    of_result = bytes_held(p.raw(), e);
  }

  constexpr index_t of_rows(index_t n) const { return capped_product(n / queries, rows); }
  constexpr index_t of_seen(index_t n) const { return capped_product(n / keys, seen); }

  /// What LibTorch's kernel of the host takes for a thread: the scores of some queries and 512 keys, and what they
  /// read. Half types have them in float, and rounded.
  constexpr index_t workspace(element e) const {
    const index_t some = smaller(rows, queries >= 768 ? 256 : queries >= 192 ? 64 : 32);
    const index_t features = ceil_divide(of_queries, capped_product(larger(1, all), bytes_of(e)));
    return capped_product(some * (smaller(512, seen) + 2 + features), is_half(e) ? 8 : bytes_of(e));
  }
  /// The same for backward, which has weights and their gradients.
  constexpr index_t workspace_back(element e) const { return capped_product(is_half(e) ? 3 : 2, workspace(e)); }
};

// Keys and values lie side by side for the kernel. What is hidden of a block is said by places, and added to scores.
constexpr attention_memory memory_of_blocks(const layer_plan& p, const attention_sizes& n, element e) {
  const engine::attended_keys& a = p.saves.attends;
  const index_t copied =
      n.queries > engine::queries_of_one_reading || n.each > 1 ? capped_sum(n.of_keys, n.of_values) : 0;
  const index_t places = a.masked || a.reach >= 0 ? capped_product(n.rows, n.seen) : 0;
  const index_t hidden = a.masked ? n.of_rows(bytes_held(p.used(3), element::boolean)) : places;
  const index_t said = capped_sum(hidden, a.by_place ? capped_product(places, 8 + 2) : 0);
  const index_t added = capped_product(hidden, 1 + bytes_of(e));
  const index_t block = n.of_rows(capped_sum(n.of_result, capped_product(n.all, 8))), work = n.workspace(e);
  const index_t merged = capped_sum(block, capped_product(3, n.of_rows(capped_product(n.all, 8))));
  const index_t seen = capped_sum(hidden, hidden > 0 ? larger(merged, capped_product(2, block)) : merged);
  index_t terms = capped_sum(n.of_rows(n.of_queries), n.of_seen(capped_sum(n.of_keys, n.of_values)));
  if (n.each > 1) terms = capped_sum(terms, n.of_seen(capped_sum(n.of_keys, n.of_values)) / n.each);
  if (hidden > 0) terms = capped_sum(terms, capped_product(n.all, 8));  // logarithms of those that see anything
  return {capped_sum(copied, larger(larger(said, seen), capped_sum(capped_sum(added, work), block))),
          capped_sum(copied, larger(said, capped_sum(capped_sum(added, n.workspace_back(e)), terms)))};
}

// The scores of a block are there four times: as products, scaled, as weights, and as those of them that are left. A
// product copies the heads of its operands. Backward makes a block's share of a gradient, and it once more as scaled.
constexpr attention_memory memory_of_scores(const attention_sizes& n, element e) {
  const index_t wide = bytes_of(is_half(e) ? element::float32 : e), times = wide / bytes_of(e);
  const index_t at_once = smaller(n.seen, larger(1, engine::scores_of_block / larger(1, n.all)));
  const index_t all = capped_product(n.of_rows(n.all), at_once), scores = capped_product(all, 4 * wide + 2);
  const bool copies = n.samples > 1;  // else heads lie in one piece
  const auto taken = [&](index_t of) { return n.each > 1 || !copies ? 0 : capped_product(of / n.keys, at_once); };
  const index_t operands = capped_sum(capped_sum(n.of_queries, n.of_keys), n.of_values);
  const index_t largest = larger(larger(n.of_queries, n.of_keys), n.of_values);
  const index_t made = capped_product(operands, (n.each > 1) + (times > 1));
  const index_t block = n.of_rows(capped_sum(n.of_result, capped_product(n.all, 8)));
  const index_t sums = capped_product(n.all, 4 * wide);  // of a block's weights, and their logarithms
  const index_t first = capped_sum(copies ? n.of_rows(n.of_queries) : 0, taken(n.of_keys));
  const index_t second = capped_sum(taken(n.of_values), block);
  return {
      capped_sum(made, larger(capped_sum(capped_product(all, wide), capped_product(first, times)),
                              capped_sum(scores, capped_product(second, times)))),
      capped_sum(capped_sum(scores, sums),
                 capped_product(capped_sum(capped_sum(operands, made), capped_product(2 + copies, largest)), times))};
}

/// The memory of attention as it meets its keys: at least what LibTorch's allocator is asked for on the host, by one
/// thread.
constexpr attention_memory memory_of_attention(const layer_plan& p, element e) {
  using by = engine::attended_keys::by;
  const by how = p.saves.attends.how;
  if (how == by::none) return {};
  const attention_sizes n(p, e);
  if (how == by::kernel) return {n.workspace(e), n.workspace_back(e)};
  attention_memory m = how == by::scores ? memory_of_scores(n, e) : memory_of_blocks(p, n, e);
  if (p.saves.attends.added)  // the gradient of what is added is that of scores
    m.back = larger(m.back, capped_sum(memory_of_scores(n, e).back, capped_product(3, bytes_held(p.used(3), e))));
  if (is_half(e) && p.exchanges() == 0) {  // blocks are added in float; for streams that is counted with them
    m.there = capped_sum(m.there, capped_product(2, n.of_result));
    m.back = capped_sum(m.back, capped_product(2, capped_sum(n.of_queries, capped_sum(n.of_keys, n.of_values))));
  }
  return m;
}

}  // namespace tessera::detail
