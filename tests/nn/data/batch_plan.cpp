#include "tests/support/tensors.hpp"

#include <tessera/nn/data/batch_plan.hpp>

// Which samples of an epoch make up a batch, and which of them a worker reads.

namespace tessera::testing {
namespace {

using nn::engine::batch_plan;
using nn::engine::positions_of;

static_assert(batch_plan{11, 6, false}.steps() == 2 && batch_plan{11, 6, true}.steps() == 1);
static_assert(batch_plan{0, 6, false}.steps() == 0 && batch_plan{5, 6, true}.steps() == 0);

TEST_CASE("batches of an epoch are its positions one after the other, all but a last uneven one that is dropped",
          "[plan]") {
  for (index_t samples = 0; samples < 30; ++samples)
    for (index_t batch = 1; batch < 12; ++batch)
      for (const bool drop_last : {false, true}) {
        const batch_plan plan{samples, batch, drop_last};
        std::vector<index_t> wanted, given;
        for (index_t p = 0; p < samples && (!drop_last || p < samples / batch * batch); ++p) wanted.push_back(p);
        for (index_t step = 0; step < plan.steps(); ++step) {
          const interval all = plan.of_step(step);
          CHECK((all.size() == batch || (step + 1 == plan.steps() && all.size() == samples % batch)));
          for (index_t p = all.lo; p < all.hi; ++p) given.push_back(p);
        }
        CHECK(given == wanted);
        CHECK(plan.from(plan.steps() * batch).empty());
      }
}

/// Balanced parts: the first n mod p have one more.
interval balanced_part(index_t n, index_t parts, index_t k) {
  return {k * (n / parts) + std::min(k, n % parts), (k + 1) * (n / parts) + std::min(k + 1, n % parts)};
}

TEST_CASE("workers along axes that cut a batch read its parts in turn, along others the same ones", "[plan]") {
  mesh_value m;
  for (const auto& [name, extent] : {std::pair{"pipe", 2}, std::pair{"node", 2}, std::pair{"data", 3}})
    m.axes.push({text(name), extent});
  m = row_major(m);
  layout x;
  x.mesh = m;
  x.placements.resize(3);
  x.dims.push(dimension{});
  x.cut_by(0, 1);
  x.cut_by(0, 2);
  for (const interval batch : {interval{0, 6}, interval{40, 53}, interval{7, 11}, interval{3, 3}})
    for (int i = 0; i < m.size(); ++i) {
      const coordinates c = m.at(i);
      const interval node = balanced_part(batch.size(), 2, c[1]);
      const interval mine = balanced_part(node.size(), 3, c[2]);
      const intervals given = positions_of(batch, x, m.rank(c));
      REQUIRE(given.count == 1);
      CHECK(given[0].size() == mine.size());
      if (!mine.empty()) CHECK(given[0] == interval{batch.lo + node.lo + mine.lo, batch.lo + node.lo + mine.hi});
    }
}

}  // namespace
}  // namespace tessera::testing
