#pragma once

#include <tessera/meta/heap_array.hpp>
#include <tessera/plan/refusals.hpp>

#include <span>

namespace tessera::pipeline {

/// How much each of several has: the layers of each stage, or the samples of each micro-batch; or why it cannot be.
struct shares {
  refusal why;
  tessera::engine::heap_array<index_t> sizes;
};

/// As many layers for each stage as for the others, the first ones with one more where they do not come out even.
///
/// Refused where a stage would have none (tessera.pipeline.stages).
constexpr shares by_count(index_t layers, int stages) {
  if (stages < 1) return {refusal{code::pipeline_empty, stages, 1, 1}, {}};
  if (layers < stages) return {refusal{code::more_stages_than_layers, layers, stages}, {}};
  shares all{{}, tessera::engine::heap_array<index_t>(stages)};
  for (int s = 0; s < stages; ++s) all.sizes[s] = layers / stages + (s < layers % stages);
  return all;
}

namespace engine {

/// Assigns layers in their order to stages, none empty, so that the largest cost of a stage is minimal: that of stage s
/// is Σ (once + live(s) · each) over its layers. The first stages take as many layers as that allows.
///
/// By bisection: log₂ Σ costs walks over the layers. A stage that takes more leaves less for those behind it, so the
/// walk finds a cut wherever there is one.
template <class Once, class Each, class Live>
constexpr shares least_maximum(index_t layers, int stages, const Once& once, const Each& each, const Live& live) {
  if (stages < 1) return {refusal{code::pipeline_empty, stages, 1, 1}, {}};
  if (layers < stages) return {refusal{code::more_stages_than_layers, layers, stages}, {}};
  const auto cost = [&](index_t i, int s) { return once(i) + live(s) * each(i); };
  // Stages that no more than this goes into each, behind which a layer for each that follows is left.
  const auto cut = [&](index_t most, tessera::engine::heap_array<index_t>& sizes) {
    index_t next = 0;
    for (int s = 0; s < stages; ++s) {
      index_t sum = 0, count = 0;
      for (; next < layers - (stages - 1 - s) && sum + cost(next, s) <= most; ++next, ++count) sum += cost(next, s);
      if (count == 0) return false;
      sizes[s] = count;
    }
    return next == layers;
  };
  index_t below = 0, enough = 0;
  for (index_t i = 0; i < layers; ++i) {
    index_t most = 0;
    for (int s = 0; s < stages; ++s) most = cost(i, s) > most ? cost(i, s) : most;
    enough += most;
  }
  shares all{{}, tessera::engine::heap_array<index_t>(stages)};
  while (enough - below > 1) {
    const index_t middle = below + (enough - below) / 2;
    (cut(middle, all.sizes) ? enough : below) = middle;
  }
  cut(enough, all.sizes);
  return all;
}

}  // namespace engine

/// Assigns layers in their order to stages, none empty, so that the largest weight of a stage is minimal. The first
/// stages take as many layers as that allows. Weights are of any unit; a layer of 0 counts 1.
constexpr shares by_weight(std::span<const index_t> weights, int stages) {
  const auto weight = [&](index_t i) {
    const index_t w = weights[static_cast<std::size_t>(i)];
    return w == 0 ? 1 : w;
  };
  return engine::least_maximum(
      static_cast<index_t>(weights.size()), stages, weight, [](index_t) { return index_t{0}; }, [](int) { return 0; });
}

/// What layers need: once, as parameters and their gradients, and for each micro-batch that goes through.
struct layer_bytes {
  index_t once = 0;
  index_t each = 0;
};

/// Assigns layers to the parts of a pipeline so that the most bytes of a part are least. Part q of P, C of them on a
/// stage, keeps ⌈(P − q)/C⌉ micro-batches, as a backward comes that much later (1F1B: S − s).
constexpr shares by_memory(std::span<const layer_bytes> layers, int parts, int chunks = 1) {
  const auto of = [&](index_t i) -> const layer_bytes& { return layers[static_cast<std::size_t>(i)]; };
  return engine::least_maximum(
      static_cast<index_t>(layers.size()), parts, [&](index_t i) { return of(i).once == 0 ? 1 : of(i).once; },
      [&](index_t i) { return of(i).each; }, [&](int q) { return (parts - q + chunks - 1) / chunks; });
}

/// Layers by sizes that somebody gives. Refused where a stage would have none, and where they are not all layers.
constexpr shares by_sizes(std::span<const index_t> sizes, index_t layers, int stages) {
  index_t all = 0, least = 1;
  for (const index_t n : sizes) {
    all += n;
    least = n < least ? n : least;
  }
  if (static_cast<int>(sizes.size()) != stages || least < 1 || all != layers)
    return {refusal{code::stages_given_otherwise, static_cast<index_t>(sizes.size()), stages, all, layers}, {}};
  shares given{{}, tessera::engine::heap_array<index_t>(stages)};
  for (int s = 0; s < stages; ++s) given.sizes[s] = sizes[static_cast<std::size_t>(s)];
  return given;
}

/// The weight of each stage, of layers shared out so.
constexpr tessera::engine::heap_array<index_t> weights_of(std::span<const index_t> weights,
                                                          std::span<const index_t> sizes) {
  tessera::engine::heap_array<index_t> all(static_cast<index_t>(sizes.size()));
  std::size_t next = 0;
  for (std::size_t s = 0; s < sizes.size(); ++s)
    for (index_t i = 0; i < sizes[s] && next < weights.size(); ++i, ++next)
      all[static_cast<index_t>(s)] += weights[next] == 0 ? 1 : weights[next];
  return all;
}

/// Whether micro-batches of one batch may have different numbers of samples.
enum class micro_batch_sizes : signed char { equal, uneven };

/// The samples of each micro-batch, the first ones with one more where they may be uneven.
///
/// Refused (tessera.pipeline.micro_batches): samples that are left over, or a micro-batch without any.
constexpr shares micro_batches_of(index_t samples, int count, micro_batch_sizes how = micro_batch_sizes::equal) {
  if (count < 1) return {refusal{code::pipeline_empty, 1, count, 1}, {}};
  if (samples < count || (how == micro_batch_sizes::equal && samples % count != 0))
    return {refusal{code::micro_batches_differ, samples, count}, {}};
  return by_count(samples, count);
}

}  // namespace tessera::pipeline
