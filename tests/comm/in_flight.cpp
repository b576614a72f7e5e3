#include "tests/support/catch.hpp"
#include "tests/support/flights.hpp"
#include "tests/support/in_workers.hpp"

#include <atomic>

using namespace tessera;
using namespace tessera::testing;

// Several calls under way on each worker. What must hold on every transport is in tests/support/flights.hpp; tests/mpi runs it
// over processes.

TEST_CASE("calls under way together end in any order, other ones on other workers") {
  for (const int size : {2, 3, 4}) {
    const auto all = in_world(size, [](const std::shared_ptr<transport>& carrier) { return every_order(*carrier); });
    INFO(all.errors());
    REQUIRE(all.well());
    for (int r = 0; r < size; ++r) CHECK(all.of(r) == "");
  }
}

TEST_CASE("calls under way together and begun in another order on each worker") {
  const auto all = in_world(3, [](const std::shared_ptr<transport>& carrier) { return every_beginning(*carrier); });
  INFO(all.errors());
  REQUIRE(all.well());
  for (int r = 0; r < 3; ++r) CHECK(all.of(r) == "");
}

TEST_CASE("one exchange under way three times keeps its calls apart") {
  for (const int size : {2, 3, 4}) {
    const auto all = in_world(size, [](const std::shared_ptr<transport>& carrier) { return same_exchange_again(*carrier); });
    INFO(all.errors());
    REQUIRE(all.well());
    for (int r = 0; r < size; ++r) CHECK(all.of(r) == "");
  }
}

TEST_CASE("what was begun and not ended is given up, and the memory may go") {
  for (int thrower = 0; thrower < 3; ++thrower) {
    const auto all = in_world(3, [&](const std::shared_ptr<transport>& carrier) {
      flight one(*carrier, gathered(3, 4001), 1);
      flight two(*carrier, summed(3, 4001), 2);
      one.start();
      two.start();
      if (carrier->rank() == thrower) throw std::runtime_error("my own trouble");
      two.finish();
      one.finish();
      return true;
    });
    INFO(all.errors());
    for (int r = 0; r < 3; ++r) CHECK(all.codes[static_cast<std::size_t>(r)] == (r == thrower ? "other" : "tessera.agree.lost"));
  }
}

TEST_CASE("a worker that gave up a call cannot go on as if nothing had been") {
  const auto all = in_world(3, [](const std::shared_ptr<transport>& carrier) {
    try {
      flight f(*carrier, gathered(3, 7), 1);
      f.start();
      if (carrier->rank() == 1) throw std::runtime_error("forgiven");
      f.finish();
    } catch (const std::runtime_error& e) {
      if (std::string_view(e.what()) != "forgiven") throw;
    }
    flight f(*carrier, gathered(3, 7), 2);
    f.start();
    f.finish();
    return true;
  });
  INFO(all.errors());
  for (int r = 0; r < 3; ++r) CHECK(all.codes[static_cast<std::size_t>(r)] == "tessera.agree.given_up");
}

TEST_CASE("workers that wait for each other's other call disagree, with any number under way") {
  const auto all = in_world(3, [](const std::shared_ptr<transport>& carrier) {
    flight common(*carrier, gathered(3, 5), 1);
    flight other(*carrier, gathered(3, carrier->rank() == 2 ? 8 : 9), 2);
    common.start();
    other.start();
    other.finish();
    common.finish();
    return true;
  });
  INFO(all.errors());
  for (int r = 0; r < 3; ++r) CHECK(all.codes[static_cast<std::size_t>(r)] == "tessera.agree.fingerprint");
}

TEST_CASE("two workers that are stuck are told so while a third one is at work") {
  std::atomic<int> told{0};
  const auto all = in_world(3, [&](const std::shared_ptr<transport>& carrier) {
    const int me = carrier->rank();
    if (me == 2) {  // works until the others have been told, and meets their error afterwards
      while (told < 2) std::this_thread::yield();
      flight f(*carrier, gathered(3, 5), 1);
      f.start();
      return true;
    }
    try {
      flight f(*carrier, gathered(2, me == 0 ? 5 : 6), 1);
      f.start();
      f.finish();
    } catch (const error&) {
      ++told;
      throw;
    }
    return true;
  });
  INFO(all.errors());
  for (int r = 0; r < 3; ++r) CHECK(all.codes[static_cast<std::size_t>(r)] == "tessera.agree.fingerprint");
}

TEST_CASE("a worker that reads no box before it has added another's is no deadlock") {
  // Worker 1 adds worker 0's term first, which comes late; worker 2 waits for its reader meanwhile.
  for (int round = 0; round < 20; ++round) {
    const auto all = in_world(3, [](const std::shared_ptr<transport>& carrier) {
      flight sum(*carrier, summed(3, 3), 1);
      flight copy(*carrier, gathered(3, 3), 2);
      if (carrier->rank() == 0) std::this_thread::sleep_for(std::chrono::milliseconds(2));
      sum.start();
      copy.start();
      carrier->rank() == 1 ? copy.finish() : sum.finish();
      carrier->rank() == 1 ? sum.finish() : copy.finish();
      return sum.right() + copy.right();
    });
    INFO(all.errors());
    REQUIRE(all.well());
    for (int r = 0; r < 3; ++r) REQUIRE(all.of(r) == "");
  }
}
