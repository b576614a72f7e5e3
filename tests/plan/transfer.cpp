#include "tests/support/catch.hpp"
#include "tests/support/generate.hpp"
#include "tests/support/oracle.hpp"
#include "tests/support/shown.hpp"

#include <set>

using namespace tessera;
using namespace tessera::engine;
using namespace tessera::testing;

namespace {

constexpr std::uint64_t seed = 20261120;

}  // namespace

TEST_CASE("a Move delivers each element once, from a worker that holds it", "[law]") {
  dice d{seed};
  for (int round = 0; round < trials(3000); ++round) {
    const layout_pair p = roll_tilings(d, true, 3, 6);
    const transfer plan{map::move, p.from, p.to};
    const int world = oracle::world_of(p.from, p.to);
    bool right = true;
    for (int r = 0; r < world; ++r) {
      const auto wanted = oracle::held(p.to, r);
      const auto own = oracle::held(p.from, r);
      std::multiset<oracle::element> got;
      plan.receives(r, [&](const message& m) {
        const auto theirs = oracle::held(p.from, m.from);
        for (const auto& e : oracle::elements(m.where)) {
          got.insert(e);
          right = right && theirs.count(e) == 1;
          right = right && (own.count(e) == 0 || m.from == r);  // what a worker holds, it takes from itself
        }
      });
      right = right && std::multiset<oracle::element>(wanted.begin(), wanted.end()) == got;
    }
    if (!right) FAIL("seed " << seed << " round " << round << "\n" << shown(p.from) << "\n" << shown(p.to));
  }
  WARN(trials(3000) << " pairs held against the oracle, seed " << seed);
}

TEST_CASE("send lists mirror receive lists, and costs are what is moved", "[law]") {
  dice d{seed + 1};
  int pairs = 0;
  for (; pairs < trials(100'000); ++pairs) {
    const layout_pair p = roll_tilings(d, true);
    const map what = d.once_in(2) ? map::move : map::fold;
    const transfer plan =
        what == map::move ? transfer{what, p.from, p.to} : transfer{what, cotangent(p.to), cotangent(p.from)};
    const int world = oracle::world_of(p.from, p.to);
    bool right = laws::costs_what_it_moves(plan, world);
    for (int r = 0; r < world; ++r) right = right && laws::mirrored(plan, r) && laws::delivers_once(plan, r);
    right = right && laws::cotangent_is_involution(p.from) && laws::cotangent_is_involution(p.to);
    if (!right)
      FAIL("seed " << seed + 1 << " pair " << pairs << " map " << int(what) << "\n"
                   << shown(p.from) << "\n"
                   << shown(p.to));
  }
  WARN(pairs << " pairs, seed " << seed + 1);
  CHECK(pairs == trials(100'000));
}
