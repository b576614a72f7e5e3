#pragma once

#include <tessera/plan/schedule/schedule.hpp>
#include <tessera/plan/schedule/stages.hpp>

namespace tessera::pipeline {

/// By what layers are shared out to the parts of a pipeline.
enum class share : signed char {
  count,       ///< as many for each
  parameters,  ///< the most parameters of a part are least
  memory,      ///< the most bytes of a part are least (`by_memory`)
  time,        ///< the most multiply-adds of a part, forward and backward, are least
  weights,     ///< the largest sum of weights that somebody gives is least
  sizes,       ///< so many for each, as somebody gives them
};

/// What a layer costs on the worker that has most of it.
struct layer_cost {
  index_t parameters = 0;  ///< elements of whole tensors
  layer_bytes bytes;
  index_t time = 0;  ///< multiply-adds of a micro-batch

  constexpr layer_cost& operator+=(const layer_cost& x) {
    using detail::capped_sum;
    parameters = capped_sum(parameters, x.parameters);
    bytes.once = capped_sum(bytes.once, x.bytes.once);
    bytes.each = capped_sum(bytes.each, x.bytes.each);
    time = capped_sum(time, x.time);
    return *this;
  }
};

/// How layers are assigned to stages.
struct assignment {
  share by = share::count;
  std::span<const index_t> given = {};  ///< weights of layers, or sizes of parts
  index_t rows = 1;                     ///< by memory or time: the extent of what only run time knows, in a micro-batch
  int chunks = 1;                       ///< parts of a stage
  bool turns = false;                   ///< the network turns back at both ends (`extent::turns`)
  text through = {};  ///< an axis whose workers send a share each of what they all have, gathered behind the boundary

  /// Whether what layers cost matters.
  constexpr bool measures() const { return by == share::parameters || by == share::memory || by == share::time; }
  /// The pipeline's parts over so many stages.
  constexpr extent over(int stages) const { return {stages, 1, chunks, turns}; }
};

/// The layers of each part.
constexpr shares shared_out(const assignment& how, std::span<const layer_cost> layers, int stages) {
  const extent of = how.over(stages);
  if (const refusal why = of.check(); !why.ok()) return {why, {}};
  const auto count = static_cast<index_t>(layers.size());
  if (how.by == share::count) return by_count(count, of.parts());
  if (how.by == share::sizes) return by_sizes(how.given, count, of.parts());
  if (how.by == share::weights) {
    if (how.given.size() == layers.size()) return by_weight(how.given, of.parts());
    return {refusal{code::stages_given_otherwise, how.given.size(), of.parts(), how.given.size(), count}, {}};
  }
  tessera::engine::heap_array<index_t> weights(count);
  tessera::engine::heap_array<layer_bytes> bytes(count);
  index_t all = 0;
  for (index_t i = 0; i < count; ++i) {
    const layer_cost& one = layers[static_cast<std::size_t>(i)];
    weights[i] = how.by == share::time ? one.time : one.parameters;
    bytes[i] = one.bytes;
    all = detail::capped_sum(all, weights[i]);
  }
  if (how.by == share::memory) return by_memory({bytes.begin(), bytes.end()}, of.parts(), how.chunks);
  if (all == INT64_MAX) return {refusal{code::cost_overflows}, {}};
  return by_weight({weights.begin(), weights.end()}, of.parts());
}

/// The part of each layer, where so many are in each.
constexpr tessera::engine::heap_array<int> parts_of(const shares& sizes) {
  index_t all = 0;
  for (const index_t n : sizes.sizes) all += n;
  tessera::engine::heap_array<int> part(all);
  index_t next = 0;
  for (index_t q = 0; q < sizes.sizes.size(); ++q)
    for (index_t i = 0; i < sizes.sizes[q]; ++i) part[next++] = static_cast<int>(q);
  return part;
}

}  // namespace tessera::pipeline
