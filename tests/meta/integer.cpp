#include "tests/support/catch.hpp"

#include <tessera/meta/integer.hpp>

namespace tessera::testing {

using namespace engine;

TEST_CASE("quotients are rounded to the side that they name, and what is left lies between 0 and the divisor",
          "[law]") {
  for (index_t a = -40; a <= 40; ++a)
    for (index_t b = 1; b <= 9; ++b) {
      INFO(a << " by " << b);
      const index_t below = detail::floor_divide(a, b), above = detail::ceil_divide(a, b);
      CHECK((below * b <= a && a < (below + 1) * b));
      CHECK(((above - 1) * b < a && a <= above * b));
      CHECK(detail::modulo(a, b) == a - below * b);
    }
}

TEST_CASE("sums and products of counts stop at the largest index, where they would leave it", "[law]") {
  constexpr index_t most = INT64_MAX;
  constexpr index_t root = 3037000499;  // root² ≤ most < (root + 1)²
  STATIC_REQUIRE(detail::capped_product(root, root) == root * root);
  STATIC_REQUIRE(detail::capped_product(root + 1, root + 1) == most);
  STATIC_REQUIRE((detail::product_fits(root, root) && !detail::product_fits(root + 1, root + 1)));
  STATIC_REQUIRE((detail::product_fits(0, most) && detail::capped_product(most, 0) == 0));
  STATIC_REQUIRE((detail::capped_product(1, most) == most && detail::capped_product(2, most) == most));
  STATIC_REQUIRE(detail::capped_sum(most - 3, 3) == most);
  STATIC_REQUIRE(detail::capped_sum(most - 4, 3) == most - 1);
  STATIC_REQUIRE(detail::capped_sum(most - 3, 4) == most);
  STATIC_REQUIRE(detail::capped_sum(most, most) == most);
  STATIC_REQUIRE(detail::capped_difference(most, most) == most);
  STATIC_REQUIRE(detail::capped_difference(most - 3, 3) == most - 6);
}

}  // namespace tessera::testing
