#include "tests/support/catch.hpp"

#include <tessera/plan/schedule/stages.hpp>

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
