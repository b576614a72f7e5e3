#include "tests/support/catch.hpp"
#include "tests/support/generate.hpp"
#include "tests/support/oracle.hpp"

namespace tessera::testing {

using namespace engine;

namespace {

/// The positions of the inputs of `s` that outputs read, one by one; those beyond the edge wrap or are padding.
std::set<index_t> reads(const std::set<index_t>& outputs, const sliding& s, index_t n) {
  std::set<index_t> all;
  if (outputs.empty()) return all;
  for (index_t i = *outputs.begin() * s.stride - s.before; i <= *outputs.rbegin() * s.stride - s.before + s.reach() - 1;
       ++i)
    if (s.edge == boundary::zero && i >= 0 && i < n) all.insert(i);
  return all;
}

}  // namespace

TEST_CASE("a composed window holds what its steps need one after the other, and is taken apart again", "[law]") {
  dice d{77};
  int whole = 0;
  for (int round = 0; round < 20'000; ++round) {
    const index_t n = d.roll(1, 12);
    const int steps = d.roll(2, 4);
    std::vector<sliding> chain;
    std::vector<index_t> extents{n};
    for (int i = 0; i < steps; ++i) {
      const int kernel = d.roll(1, 4);
      const sliding s{kernel, d.roll(1, 3), d.roll(0, kernel - 1), d.roll(0, kernel - 1), 1};
      if (!s.check(0, extents.back()).ok()) break;
      chain.push_back(s);
      extents.push_back(s.outputs(extents.back()));
    }
    if (chain.size() < 2 || extents.back() == 0) continue;
    // From the last step backwards, as a planner composes them.
    std::size_t last = chain.size() - 1;
    window w = chain[last].needs();
    for (std::size_t i = last; i-- > 0;) {
      REQUIRE(composes(chain[i].needs(), w, extents[i + 1], extents[i]));
      const window wider = composed(chain[i].needs(), w, extents[i + 1], extents[i]);
      REQUIRE(divides(wider, chain[i].needs(), extents[i + 1], extents[i]));
      const window left = quotient(wider, chain[i].needs(), extents[i + 1], extents[i]);
      CHECK(composed(chain[i].needs(), left, extents[i + 1], extents[i]) == wider);
      w = wider;
    }
    const index_t lo = d.roll(0, static_cast<int>(extents.back()) - 1);
    const index_t hi = d.roll(static_cast<int>(lo) + 1, static_cast<int>(extents.back()));
    std::set<index_t> need;
    for (index_t y = lo; y < hi; ++y) need.insert(y);
    bool some = true;
    for (std::size_t i = chain.size(); i-- > 0;) {
      need = reads(need, chain[i], extents[i]);
      some = some && !need.empty();
    }
    if (!some) continue;  // a step reads padding alone: the composed window holds more than it needs, never less
    const intervals held = image({w.first(lo), w.last(hi - 1) + 1}, w, n);
    REQUIRE(held.count == 1);
    CHECK(held[0] == interval{*need.begin(), *need.rbegin() + 1});
    ++whole;
  }
  CHECK(whole > 5'000);
}

TEST_CASE("windows with divisors compose where no rounding is multiplied, and only there", "[law]") {
  dice d{78};
  int exact = 0;
  int rounded = 0;
  const auto any = [&d] {
    window w{d.roll(1, 3), d.roll(-3, 3), 0, d.roll(1, 3)};
    w.b2 = w.b + d.roll(0, 4);
    return w;
  };
  for (int round = 0; round < 20'000; ++round) {
    const index_t n = d.roll(1, 12);
    const index_t middle = d.roll(1, 12);
    const window first = any();
    window second = any();
    second.unreached_before = d.roll(0, static_cast<int>(std::min<index_t>(2, middle - 1)));
    second.unreached_after = d.roll(0, static_cast<int>(std::min<index_t>(2, middle - 1 - second.unreached_before)));
    const window both = composed(first, second, middle, n);
    const bool composable = first.a == 1 || second.c == 1;
    REQUIRE(composes(first, second, middle, n) == composable);
    if (composable) {
      REQUIRE(divides(both, first, middle, n));
      REQUIRE(composed(first, quotient(both, first, middle, n), middle, n) == both);
    }
    const index_t lo = d.roll(0, 6);
    const index_t hi = lo + d.roll(1, 4);
    // One by one: what the outputs read between the steps, and what that reads.
    std::set<index_t> between;
    std::set<index_t> need;
    const auto below = [](index_t x, index_t c) { return x / c - (x % c < 0 ? 1 : 0); };
    for (index_t i = below(second.a * lo + second.b, second.c); i <= below(second.a * (hi - 1) + second.b2, second.c);
         ++i)
      if (i >= second.unreached_before && i < middle - second.unreached_after) between.insert(i);
    if (between.empty()) continue;
    for (index_t i = below(first.a * *between.begin() + first.b, first.c);
         i <= below(first.a * *between.rbegin() + first.b2, first.c); ++i)
      if (i >= 0 && i < n) need.insert(i);
    if (need.empty()) continue;
    const bool right =
        image({both.first(lo), both.last(hi - 1) + 1}, both, n)[0] == interval{*need.begin(), *need.rbegin() + 1};
    if (composable) REQUIRE(right);
    (composable ? exact : rounded) += composable || !right;
  }
  CHECK(exact > 4'000);
  CHECK(rounded > 100);  // the formula does not hold where it is not used

  window mirror = sliding{3, 1, 1, 1, 1, boundary::reflect}.needs();
  CHECK(!composes(mirror, mirror, 9, 9));
  mirror.edge = boundary::replicate;
  CHECK(!composes(mirror, mirror, 9, 9));
  window ring = sliding{2, 2, 0, 0, 1, boundary::periodic}.needs();
  CHECK(composes(ring, ring, 4, 8));
  CHECK(!composes(ring, ring, 4, 9));
  ring.a = 1;
  ring.c = 2;  // two outputs from each input
  CHECK(composes(ring, ring, 8, 4));
  CHECK(!composes(ring, ring, 8, 8));
}

TEST_CASE("the image of a window is what its boundary reads, and preimages find it", "[law]") {
  dice d{78};
  for (int round = 0; round < 50'000; ++round) {
    const index_t n = d.roll(1, 8);
    const boundary edges[]{boundary::zero, boundary::reflect, boundary::replicate, boundary::periodic};
    const sliding s{d.roll(1, 5), d.roll(1, 3), d.roll(0, 9), d.roll(0, 9), d.roll(1, 2), edges[d.roll(0, 3)]};
    if (!s.check(0, n).ok()) continue;
    const index_t outputs = s.outputs(n);
    const window w = s.needs();
    const index_t lo = d.roll(0, static_cast<int>(outputs) - 1);
    const index_t hi = d.roll(static_cast<int>(lo) + 1, static_cast<int>(outputs));
    std::set<index_t> read;
    for (index_t i = lo * s.stride - s.before; i <= (hi - 1) * s.stride - s.before + s.reach() - 1; ++i)
      if (const index_t e = oracle::read(i, n, s.edge); e >= 0) read.insert(e);
    std::multiset<index_t> held;
    for (const interval& i : image({w.first(lo), w.last(hi - 1) + 1}, w, n))
      for (index_t e = i.lo; e < i.hi; ++e) held.insert(e);
    CHECK(std::multiset<index_t>(read.begin(), read.end()) == held);
  }
}

}  // namespace tessera::testing
