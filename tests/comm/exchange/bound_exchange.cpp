#include "tests/support/by_sockets.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/exchanged.hpp"

using namespace tessera;
using namespace tessera::testing;

// What must hold on every transport is in tests/support/exchanged.hpp.

TEST_CASE("a Move puts every element where its layout says, and a Fold is its transpose", "[law][runtime]") {
  CHECK(moves_and_transposes(by_itself, 300, 7) == "");
  CHECK(moves_and_transposes<by_sockets>(by_itself, 60, 8) == "");
}

TEST_CASE("two Moves one after the other are the Move from the first to the last", "[law][runtime]") {
  CHECK(move_after_move(by_itself, 150, 11) == "");
  CHECK(move_after_move<by_sockets>(by_itself, 30, 12) == "");
}

TEMPLATE_TEST_CASE("a Fold adds what the halos of a plane hold, where any of them overlap", "[law][runtime]", by_memory,
                   by_sockets) {
  CHECK(overlapping_halos<TestType>(by_itself) == "");
}
