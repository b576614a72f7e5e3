#include "tests/support/catch.hpp"

#include <tessera/meta/static_vector.hpp>

namespace tessera::testing {

using namespace engine;

TEST_CASE("lists are equal by their items, not by what lies behind their ends", "[plan]") {
  constexpr auto of = [](auto... items) {
    static_vector<int, 3> all;
    (all.push(items), ...);
    return all;
  };
  constexpr auto shrunk = [](static_vector<int, 3> x, int n) {
    x.resize(n);
    return x;
  };
  STATIC_REQUIRE(shrunk(of(1, 2, 3), 2) == of(1, 2));
  STATIC_REQUIRE(!(of(1, 2) == of(1, 2, 0)));
  STATIC_REQUIRE(!(of(1, 2) == of(2, 1)));
  STATIC_REQUIRE((no_items<int, 3> == of() && of().empty()));
}

TEST_CASE("a full list takes nothing more and stays as it is", "[refusal]") {
  static_vector<int, 2> two;
  two.push(4);
  two.push(5);
  bool refused = false;
  try {
    two.push(6);
  } catch (const refused_value& e) {
    refused = e.why.is(code::list_full);
  }
  CHECK(refused);
  CHECK((two.size() == 2 && two[0] == 4 && two[1] == 5));
}

}  // namespace tessera::testing
