#include "tests/support/catch.hpp"

#include <tessera/operation/plan/bundles.hpp>

#include <map>
#include <random>
#include <vector>

namespace tessera::testing {
namespace {

using engine::bundle_limits;
using engine::bundle_packer;
using engine::bundle_range;

struct member {
  int kind;
  index_t bytes;
  bundle_range lies;
};

/// Members of several kinds, of sizes from nothing to more than a bundle.
std::vector<member> packed(unsigned draw, const bundle_limits& limits, bundle_packer<int, 4>& packer) {
  std::mt19937 random(draw);
  std::vector<member> all;
  for (int i = 0; i < 60; ++i) {
    const int kind = static_cast<int>(random() % 4);
    const index_t most = random() % 3 == 0 ? limits.capacity * 5 / 4 : limits.capacity / 4;
    const index_t bytes = static_cast<index_t>(random()) % (most + 1);
    all.push_back({kind, bytes, packer.add(kind, bytes)});
  }
  return all;
}

constexpr bool fills_one_bundle() {
  bundle_packer<int, 1> packer({1024, 512});
  return packer.add(0, 512) == bundle_range{0, 0} && packer.add(0, 512) == bundle_range{0, 512} &&
         packer.add(0, 1) == bundle_range{1, 0} && packer.add(0, 820).alone() &&
         packer.add(0, 512) == bundle_range{1, 512} && packer.count() == 2;
}
static_assert(fills_one_bundle());

TEST_CASE("members of a bundle are of one kind, aligned, disjoint and within its capacity", "[law]") {
  for (unsigned draw = 0; draw < 50; ++draw) {
    const bundle_limits limits{1000 + 700 * static_cast<index_t>(draw), 1 + 37 * (draw % 5)};
    bundle_packer<int, 4> packer(limits);
    struct state {
      int kind;
      index_t end;
    };
    std::map<int, state> bundles;
    for (const member& one : packed(draw, limits, packer)) {
      INFO("draw " << draw << ", " << one.bytes << " bytes of kind " << one.kind);
      REQUIRE(one.lies.alone() == (5 * one.bytes >= 4 * limits.capacity));
      if (one.lies.alone()) continue;
      CHECK(one.lies.begin % limits.alignment == 0);
      CHECK(one.lies.begin + one.bytes <= limits.capacity);
      const auto [at, opened] = bundles.try_emplace(one.lies.bundle, state{one.kind, 0});
      CHECK(opened == (one.lies.begin == 0 && at->second.end == 0));
      CHECK(at->second.kind == one.kind);
      CHECK(one.lies.begin >= at->second.end);
      CHECK(one.lies.begin < at->second.end + limits.alignment);  // nothing is left free between two
      at->second.end = one.lies.begin + one.bytes;
    }
    CHECK(static_cast<int>(bundles.size()) == packer.count());
  }
}

TEST_CASE("a bundle is closed only when the next of its kind has no room", "[law]") {
  for (unsigned draw = 0; draw < 50; ++draw) {
    const bundle_limits limits{4096, 512};
    bundle_packer<int, 4> packer(limits);
    std::map<int, member> last;  // of a kind
    for (const member& one : packed(draw, limits, packer)) {
      if (one.lies.alone()) continue;
      if (const auto before = last.find(one.kind);
          before != last.end() && before->second.lies.bundle != one.lies.bundle) {
        const index_t end = before->second.lies.begin + before->second.bytes;
        CHECK((end + 511) / 512 * 512 + one.bytes > 4096);
      }
      last[one.kind] = one;
    }
  }
}

TEST_CASE("more kinds than a packer has room for are refused", "[refusal]") {
  bundle_packer<int, 2> packer;
  packer.add(1, 8), packer.add(2, 8), packer.add(1, 8);
  CHECK_THROWS_AS(packer.add(3, 8), engine::refused_value);
}

}  // namespace
}  // namespace tessera::testing
