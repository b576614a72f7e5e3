#include "tests/support/catch.hpp"
#include "tests/support/images.hpp"

#include <cmath>

namespace tessera::testing {

using namespace engine;

TEST_CASE("an upsampling reads what stands around its outputs, and more only where floating point is not exact",
          "[law][plan]") {
  constexpr auto by = [](double factor, interpolation mode) {
    upsampling u;
    u.factors.push(factor);
    u.mode = mode;
    return u;
  };
  STATIC_REQUIRE(by(2, interpolation::nearest).over(0, 9).reads() == window{1, 0, 0, 2});
  STATIC_REQUIRE(by(1.5, interpolation::nearest).over(0, 17).exact() == window{2, 0, 0, 3});
  STATIC_REQUIRE(by(1.1, interpolation::linear).over(0, 17).exact() == window{20, -1, 21, 22});
  STATIC_REQUIRE(by(2, interpolation::cubic).over(0, 9).reads() == window{2, -1 - 4, -1 + 8, 4});
  STATIC_REQUIRE(by(3, interpolation::cubic).over(0, 9).slack() == 1);
  STATIC_REQUIRE(by(3, interpolation::cubic).over(0, 1 << 24).slack() == 9);
  for (const auto mode :
       {interpolation::nearest, interpolation::nearest_exact, interpolation::linear, interpolation::cubic})
    for (const bool corners : {false, true})
      for (index_t n = 1; n < (corners && mode == interpolation::nearest_exact ? 1 : 40); ++n)  // which has none
        for (index_t m = 1; m < 60; ++m) {
          const resampling r{n, m, 0, mode, corners};
          const double step = corners ? (m > 1 ? static_cast<double>(n - 1) / static_cast<double>(m - 1) : 0)
                                      : static_cast<double>(n) / static_cast<double>(m);
          const double half = corners || mode == interpolation::nearest ? 0 : 0.5;
          bool there = true;
          for (index_t y = 0; y < m; ++y) {
            const double place =
                (static_cast<double>(y) + half) * step - (mode == interpolation::nearest_exact ? 0 : half);
            const reach wide = reach_of(mode);
            const auto below = static_cast<index_t>(std::floor(place + 1e-9));  // a place on an element is on it
            there = there && r.exact().first(y) == below - wide.before && r.exact().last(y) == below + wide.after &&
                    r.reads().first(y) == r.exact().first(y) - r.slack();
          }
          INFO(static_cast<int>(mode) << " corners " << corners << ": " << n << " to " << m);
          REQUIRE(there);
        }
}

}  // namespace tessera::testing
