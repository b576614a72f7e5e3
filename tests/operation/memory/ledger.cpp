#include "tests/support/catch.hpp"
#include "tests/support/generate.hpp"

#include <tessera/operation/memory/ledger.hpp>

#include <algorithm>

namespace tessera::testing {

using namespace engine;

namespace {

constexpr int count = 4;

/// The ledger of some values, and what it says lives.
struct book : detail::memory_ledger<count> {
  book() {
    count_ = count;
    for (int v = 0; v < count; ++v) {
      bytes_[v] = stored_[v] = index_t{1} << (4 * v);  // so that a sum says which they are
      gradient_[v] = -1;
    }
  }
  using memory_ledger::add, memory_ledger::remove, memory_ledger::reach, memory_ledger::hold, memory_ledger::let_go;
  using memory_ledger::arrive, memory_ledger::drop_gradient;
  index_t bytes(int v) const { return bytes_[v]; }
  index_t live() const { return live_; }
  index_t peak() const { return peak_; }

  /// A gradient of its own that an operation made for a value.
  void give(int v) {
    add(bytes(v));
    arrive(v, bytes(v), -1);
  }
};

}  // namespace

TEST_CASE("a box lives from its first holder to its last, and the peak is the most that lived at once", "[law]") {
  dice d{20261126};
  book all;
  int holders[count]{};
  index_t most = 0;
  for (int turn = 0; turn < 2000; ++turn) {
    const int v = d.roll(0, count - 1);
    if (d.roll(0, 1) == 0 || holders[v] == 0) {
      ++holders[v];
      all.hold(v);
    } else {
      --holders[v];
      all.let_go(v);
    }
    index_t lives = 0;
    for (int w = 0; w < count; ++w) lives += holders[w] > 0 ? all.bytes(w) : 0;
    most = std::max(most, lives);
    REQUIRE((all.live() == lives && all.peak() == most));
  }
  all.reach(most);
  CHECK(all.peak() == all.live() + most);  // what was there for a moment counts, and is gone
}

TEST_CASE("of gradients that come to one value one box lives on, and it goes with its last holder", "[plan]") {
  book all;
  all.give(1);
  all.give(1);  // added to the first where that lies
  CHECK((all.live() == all.bytes(1) && all.peak() == 2 * all.bytes(1)));
  all.arrive(0, 0, 1);  // value 0 gets the same box
  all.drop_gradient(1);
  CHECK(all.live() == all.bytes(1));
  all.drop_gradient(0);
  CHECK(all.live() == 0);
  all.drop_gradient(0);
  CHECK(all.live() == 0);
}

TEST_CASE("a gradient that others hold is not added to: the sum is a box of its own", "[plan]") {
  book all;
  all.give(2);
  all.arrive(1, 0, 2);  // both operands of a sum get the sum's own
  all.arrive(3, 0, 2);
  all.drop_gradient(2);
  CHECK(all.live() == all.bytes(2));
  all.give(1);  // beside the shared one, and the sum beside both
  CHECK(all.peak() == all.bytes(2) + 2 * all.bytes(1));
  CHECK(all.live() == all.bytes(2) + all.bytes(1));
  all.drop_gradient(3);
  CHECK(all.live() == all.bytes(1));
  all.drop_gradient(1);
  CHECK(all.live() == 0);
}

}  // namespace tessera::testing
