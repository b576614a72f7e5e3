#include "tests/support/catch.hpp"

#include <tessera/plan/schedule/assignment.hpp>

#include <algorithm>
#include <numeric>
#include <random>
#include <vector>

// Layers given to stages, and samples to micro-batches.

namespace tessera::stage_shares {

namespace {

constexpr bool same(const refusal& a, const refusal& b) {
  return a.because == b.because && a.count == b.count && std::equal(a.numbers, a.numbers + a.count, b.numbers);
}

/// The least largest weight of a stage by trying all cuts.
index_t least_largest(const std::vector<index_t>& weights, std::size_t begin, int stages) {
  if (stages == 1) {
    index_t sum = 0;
    for (std::size_t i = begin; i < weights.size(); ++i) sum += std::max<index_t>(weights[i], 1);
    return sum;
  }
  index_t least = INT64_MAX, sum = 0;
  for (std::size_t i = begin; i + static_cast<std::size_t>(stages) <= weights.size(); ++i) {
    sum += std::max<index_t>(weights[i], 1);
    least = std::min(least, std::max(sum, least_largest(weights, i + 1, stages - 1)));
  }
  return least;
}

}  // namespace

TEST_CASE("stages have as many layers, or the least largest weight, and none is empty", "[law]") {
  STATIC_REQUIRE(pipeline::by_count(10, 4).sizes == std::initializer_list<index_t>{3, 3, 2, 2});
  std::mt19937 draw(1);
  int wrong = 0;
  for (int i = 0; i < 300; ++i) {
    std::vector<index_t> weights(1 + draw() % 9);
    for (index_t& w : weights) w = draw() % 3 == 0 ? 0 : static_cast<index_t>(draw() % 50);
    const int stages = 1 + static_cast<int>(draw() % weights.size());
    const pipeline::shares all = pipeline::by_weight(weights, stages);
    const engine::heap_array<index_t> each = pipeline::weights_of(weights, all.sizes);
    wrong += !all.why.ok() || static_cast<int>(all.sizes.size()) != stages;
    wrong += std::accumulate(all.sizes.begin(), all.sizes.end(), index_t{0}) != static_cast<index_t>(weights.size());
    wrong += *std::min_element(all.sizes.begin(), all.sizes.end()) < 1;
    wrong += *std::max_element(each.begin(), each.end()) != least_largest(weights, 0, stages);
  }
  CHECK(wrong == 0);
}

/// The least most bytes of a part by trying all cuts.
index_t least_bytes(const std::vector<pipeline::layer_bytes>& layers, std::size_t begin, int part, int parts,
                    int chunks) {
  const index_t live = (parts - part + chunks - 1) / chunks;
  const auto of = [&](std::size_t i) { return std::max<index_t>(layers[i].once, 1) + live * layers[i].each; };
  index_t least = INT64_MAX, sum = 0;
  for (std::size_t i = begin; i < layers.size(); ++i) {
    sum += of(i);
    if (part + 1 < parts && i + 1 < layers.size())
      least = std::min(least, std::max(sum, least_bytes(layers, i + 1, part + 1, parts, chunks)));
  }
  if (part + 1 == parts && begin < layers.size()) least = sum;
  return least;
}

TEST_CASE("the most bytes of a part are least, of which earlier parts keep more micro-batches", "[law]") {
  std::mt19937 draw(2);
  int wrong = 0;
  for (int i = 0; i < 300; ++i) {
    std::vector<pipeline::layer_bytes> layers(1 + draw() % 8);
    for (auto& one : layers) one = {static_cast<index_t>(draw() % 60), static_cast<index_t>(draw() % 20)};
    const int parts = 1 + static_cast<int>(draw() % layers.size()), chunks = 1 + static_cast<int>(draw() % 2);
    const pipeline::shares all = pipeline::by_memory(layers, parts, chunks);
    index_t most = 0;
    std::size_t next = 0;
    for (int q = 0; q < parts; ++q) {
      index_t sum = 0;
      for (index_t k = 0; k < all.sizes[q]; ++k, ++next)
        sum += std::max<index_t>(layers[next].once, 1) + (parts - q + chunks - 1) / chunks * layers[next].each;
      most = std::max(most, sum);
      wrong += all.sizes[q] < 1;
    }
    wrong += !all.why.ok() || next != layers.size() || most != least_bytes(layers, 0, 0, parts, chunks);
  }
  CHECK(wrong == 0);
}

TEST_CASE("an assignment says by what layers are shared out", "[plan]") {
  const std::vector<pipeline::layer_cost> layers{{5, {1, 9}, 1}, {1, {1, 1}, 2}, {1, {1, 1}, 3}, {1, {1, 1}, 7}};
  const auto sizes = [&](const pipeline::assignment& how) {
    const pipeline::shares all = pipeline::shared_out(how, layers, 2);
    return std::vector<index_t>(all.sizes.begin(), all.sizes.end());
  };
  using pipeline::share;
  const std::vector<index_t> weights{1, 1, 1, 9}, given{3, 1};
  CHECK(sizes({}) == std::vector<index_t>{2, 2});
  CHECK(sizes({.by = share::parameters}) == std::vector<index_t>{1, 3});
  CHECK(sizes({.by = share::memory}) == std::vector<index_t>{1, 3});
  CHECK(sizes({.by = share::time}) == std::vector<index_t>{3, 1});
  CHECK(sizes({.by = share::weights, .given = weights}) == std::vector<index_t>{3, 1});
  CHECK(sizes({.by = share::sizes, .given = given}) == std::vector<index_t>{3, 1});
  CHECK(sizes({.chunks = 2}) == std::vector<index_t>{1, 1, 1, 1});
  CHECK(same(pipeline::shared_out({.by = share::sizes, .given = given, .chunks = 2}, layers, 2).why,
             refusal{code::stages_given_otherwise, 2, 4, 4, 4}));
  CHECK(same(pipeline::shared_out({.by = share::weights, .given = given}, layers, 2).why,
             refusal{code::stages_given_otherwise, 2, 2, 2, 4}));
  const std::vector<index_t> none{4, 0};
  CHECK(same(pipeline::shared_out({.by = share::sizes, .given = none}, layers, 2).why,
             refusal{code::stages_given_otherwise, 2, 2, 4, 4}));
}

TEST_CASE("costs that are more than can be counted are refused", "[refusal]") {
  const std::vector<pipeline::layer_cost> layers{{INT64_MAX / 2, {}, INT64_MAX / 2}, {INT64_MAX / 2 + 1, {}, 5}};
  using pipeline::share;
  CHECK(same(pipeline::shared_out({.by = share::parameters}, layers, 2).why, refusal{code::cost_overflows}));
  CHECK(pipeline::shared_out({.by = share::time}, layers, 2).why.ok());
  pipeline::layer_cost both = layers[0];
  both += layers[1];
  both += layers[0];
  CHECK((both.parameters == INT64_MAX && both.time == INT64_MAX));
}

TEST_CASE("a stage without a layer and a batch that is not shared out are refused", "[refusal]") {
  CHECK(same(pipeline::by_count(3, 4).why, refusal{code::more_stages_than_layers, 3, 4}));
  CHECK(same(pipeline::by_weight(std::vector<index_t>{1, 2}, 3).why, refusal{code::more_stages_than_layers, 2, 3}));
  CHECK(same(pipeline::by_count(3, 0).why, refusal{code::pipeline_empty, 0, 1, 1}));
  using pipeline::micro_batch_sizes;
  CHECK((pipeline::micro_batches_of(8, 4).sizes == std::initializer_list<index_t>{2, 2, 2, 2}));
  CHECK(same(pipeline::micro_batches_of(9, 4).why, refusal{code::micro_batches_differ, 9, 4}));
  CHECK((pipeline::micro_batches_of(9, 4, micro_batch_sizes::uneven).sizes ==
         std::initializer_list<index_t>{3, 2, 2, 2}));
  CHECK(
      same(pipeline::micro_batches_of(3, 4, micro_batch_sizes::uneven).why, refusal{code::micro_batches_differ, 3, 4}));
}

}  // namespace tessera::stage_shares
