#include "tests/support/catch.hpp"
#include "tests/support/images.hpp"

#include <tessera/network.hpp>

namespace tessera::testing {

using namespace engine;

TEST_CASE("the average of whole images exchanges sums alone", "[plan][refusal]") {
  using net = sequential_type<image, nn::global_avg_pool>;
  STATIC_REQUIRE(std::is_same_v<net::output, tensor<partition<grid, whole, whole, whole, whole>,
                                                    shape<batch, dim<3>, dim<1>, dim<1>>, double>>);
  constexpr traffic_value t = traffic<net>(bind<batch>(4));
  STATIC_REQUIRE(t.forward.bytes == 2 * (4 - 1) * 4 * 3 * 8);  // an all_reduce of 4 x 3 means over four workers
  STATIC_REQUIRE(t.backward.bytes == t.forward.bytes);
  CHECK(nn::global_avg_pool::plan({value_of<image>.layout, element::int64}).why.is(code::mean_of_integers));
}

}  // namespace tessera::testing
