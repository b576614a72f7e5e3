#include "tests/support/tensors.hpp"

#include <tessera/nn/data/shuffled_order.hpp>

#include <limits>
#include <map>
#include <set>

// An order of samples is a permutation by (seed, epoch), any place of which is found by itself.

namespace tessera::testing {
namespace {

using nn::engine::shuffled_order;

std::vector<index_t> all_of(const shuffled_order& order) {
  std::vector<index_t> all;
  for (index_t p = 0; p < order.size(); ++p) all.push_back(order[p]);
  return all;
}

// Each sample once, on whatever side of a square their number lies.
TEST_CASE("an order has each sample once, however many there are", "[law]") {
  for (const index_t n : {0, 1, 2, 3, 4, 5, 7, 8, 9, 10, 15, 16, 17, 99, 100, 101, 1000, 65535, 65536, 65537, 1000003})
    for (const index_t epoch : {0, 1, 2, 1000000}) {
      std::vector<char> seen(static_cast<std::size_t>(n));
      bool well = true;
      for (const index_t sample : all_of(shuffled_order(n, 7, epoch))) {
        well = well && 0 <= sample && sample < n && seen[static_cast<std::size_t>(sample)] == 0;
        if (well) seen[static_cast<std::size_t>(sample)] = 1;
      }
      CHECK(well);
    }
}

TEST_CASE("an order of numbers near the largest stays inside them and is told apart place by place", "[law]") {
  const index_t n = std::numeric_limits<index_t>::max();
  const shuffled_order order(n, 3, 0);
  std::set<index_t> seen;
  for (index_t p = 0; p < 1000; ++p) {
    for (const index_t at : {p, n - 1 - p, n / 2 + p}) {
      const index_t sample = order[at];
      CHECK((0 <= sample && sample < n && seen.insert(sample).second));
    }
  }
}

TEST_CASE("an order is a constant of the seed's stream and the epoch", "[law]") {
  static_assert(shuffled_order(1, 5, 0)[0] == 0);
  constexpr index_t here = shuffled_order(1000, 5, 2)[17];
  CHECK(shuffled_order(1000, 5, 2)[17] == here);
  CHECK(all_of(shuffled_order(50, 5, 0)) != all_of(shuffled_order(50, 5, 1)));
  CHECK(all_of(shuffled_order(50, 5, 0)) != all_of(shuffled_order(50, 6, 0)));
}

/// Σ (n − expected)² / expected: with k degrees of freedom it is k ± √(2 k).
double chi_squared(const std::vector<index_t>& counts) {
  double sum = 0, all = 0;
  for (const index_t n : counts) all += static_cast<double>(n);
  const double expected = all / static_cast<double>(counts.size());
  for (const index_t n : counts) sum += (static_cast<double>(n) - expected) * (static_cast<double>(n) - expected);
  return sum / expected;
}

TEST_CASE("all permutations of few samples come alike often", "[law]") {
  for (const index_t n : {2, 3, 4, 5, 6, 7}) {
    std::map<std::vector<index_t>, index_t> counts;
    index_t permutations = 1;
    for (index_t i = 2; i <= n; ++i) permutations *= i;
    for (index_t epoch = 0; epoch < 60 * permutations; ++epoch) ++counts[all_of(shuffled_order(n, 11, epoch))];
    REQUIRE(static_cast<index_t>(counts.size()) == permutations);
    std::vector<index_t> each;
    for (const auto& [order, count] : counts) each.push_back(count);
    const double freedom = static_cast<double>(permutations - 1);
    CHECK(chi_squared(each) < freedom + 4 * std::sqrt(2 * freedom));
  }
}

TEST_CASE("every sample comes to every place, and behind every other one, alike often", "[law]") {
  for (const index_t n : {7, 16, 37}) {
    const auto cells = static_cast<std::size_t>(n * n);
    std::vector<index_t> at(cells), pairs(cells);
    for (index_t epoch = 0; epoch < 40 * n; ++epoch) {
      const std::vector<index_t> all = all_of(shuffled_order(n, 13, epoch));
      for (std::size_t p = 0; p < all.size(); ++p) {
        ++at[p * all.size() + static_cast<std::size_t>(all[p])];
        if (p > 0) ++pairs[static_cast<std::size_t>(all[p - 1] * n + all[p])];
      }
    }
    const double freedom = static_cast<double>((n - 1) * (n - 1));
    CHECK(chi_squared(at) < freedom + 4 * std::sqrt(2 * freedom));
    std::vector<index_t> others;
    for (index_t i = 0; i < n * n; ++i)
      if (i / n != i % n) others.push_back(pairs[static_cast<std::size_t>(i)]);
    const double more = static_cast<double>(n * (n - 1));
    CHECK(chi_squared(others) < more + 4 * std::sqrt(2 * more));
  }
}

}  // namespace
}  // namespace tessera::testing
