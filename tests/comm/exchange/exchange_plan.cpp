#include "tests/support/catch.hpp"
#include "tests/support/generate.hpp"
#include "tests/support/oracle.hpp"
#include "tests/support/shown.hpp"

#include <tessera/comm/exchange/exchange_plan.hpp>
#include <tessera/core.hpp>

using namespace tessera;
using namespace tessera::engine;
using namespace tessera::testing;

TEST_CASE("what exchanges bring to all workers is what their phases cost, messages too", "[law]") {
  constexpr std::uint64_t seed = 20261128;
  dice d{seed};
  int products = 0;
  int zigzags = 0;
  for (int round = 0; round < trials(5000); ++round) {
    layout from = roll_layout(d, roll_mesh(d, 3), roll_extents(d, 3, 8), {true, true, true, false, true});
    layout to = from;
    for (int a = 0; a < from.placements.count; ++a) {
      if (from.placements[a].kind == placement::cut || from.placements[a].kind == placement::on) continue;
      if (d.once_in(2)) from.placements[a] = partial_by(combine::sum);
      to.placements[a] = {d.once_in(2) ? placement::replicate : placement::invariant};
    }
    const change c = change_between(from, to);
    for (const phase& p : phases_of(c)) {
      products += p.is_product();
      for (int dim = 0; dim < from.dims.count; ++dim)
        zigzags += p.is_product() && from.dims[dim].zigzag && from.levels(dim) > 0;
      const cost counted = cost_of(p);
      index_t bytes = 0;
      index_t messages = 0;
      index_t busiest = 0;
      for (int r = 0; r < oracle::world_of(from, to); ++r) {
        const received brings = exchange_plan(p, r, element::float32, {}).brings;
        bytes += brings.bytes;
        messages += brings.messages;
        busiest = std::max<index_t>(busiest, brings.messages);
      }
      if (bytes != counted.total * 4 || messages != counted.messages || busiest != counted.busiest_messages)
        FAIL("seed " << seed << " round " << round << ": " << messages << " messages, " << counted.messages
                     << " counted\n"
                     << shown(from) << "\n"
                     << shown(to));
    }
  }
  WARN(products << " products, " << zigzags << " zigzags in them, seed " << seed);
  CHECK(products > trials(200));
  CHECK(zigzags > trials(20));
}
