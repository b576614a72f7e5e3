#include "tests/support/catch.hpp"
#include "tests/support/images.hpp"

#include <tessera/network.hpp>
#include <tessera/operation/layer/layer_values.hpp>

#include <cmath>

namespace tessera::testing {

using namespace engine;

TEST_CASE("an upsampling refuses what it cannot make", "[refusal]") {
  constexpr auto why = [](const nn::upsample_layer& l) { return l.plan(value_of<image>).why; };
  STATIC_REQUIRE(why({.factors = {1.5, 2}, .mode = interpolation::cubic, .align_corners = true}).ok());
  STATIC_REQUIRE(why({.sizes = {4, 5}}).ok());
  STATIC_REQUIRE(why({.factors = {1.5, 2}, .sizes = {4, 5}}).is(code::option_given_twice));
  STATIC_REQUIRE(why({}).is(code::layer_takes_other_dimensions));
  STATIC_REQUIRE(why({.sizes = {4}}).is(code::layer_takes_other_dimensions));
  STATIC_REQUIRE(why({.sizes = {4, 4, 4, 4}}).is(code::wrong_kernel));
  STATIC_REQUIRE(why({.factors = {2, 0}}).is(code::factor_not_positive));
  STATIC_REQUIRE(why({.factors = {2, -3}}).is(code::factor_not_positive));
  STATIC_REQUIRE(why({.factors = {2, 1e300}}).is(code::factor_not_positive));
  REQUIRE(why({.factors = {2, std::nan("")}}).is(code::factor_not_positive));
  STATIC_REQUIRE(why({.factors = {0.1, 2}}).is(code::nothing_to_resample));
  STATIC_REQUIRE(why({.factors = {2e9, 2}}).is(code::nothing_to_resample));
  STATIC_REQUIRE(why({.sizes = {4, 0}}).is(code::nothing_to_resample));
  STATIC_REQUIRE(why({.factors = {2, 2}, .align_corners = true}).is(code::nearest_has_no_corners));
  STATIC_REQUIRE(why({.factors = {2, 2}, .mode = interpolation::nearest_exact, .align_corners = true})
                     .is(code::nearest_has_no_corners));
  STATIC_REQUIRE(
      why({.factors = {2, 2}, .mode = interpolation::linear, .antialias = true}).is(code::antialias_not_there));
}

}  // namespace tessera::testing
