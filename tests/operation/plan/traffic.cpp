#include "tests/support/catch.hpp"
#include "tests/support/images.hpp"

#include <tessera/network.hpp>

namespace tessera::testing {

using namespace engine;

TEST_CASE("traffic counts parameters and is what must be moved", "[plan]") {
  using net = sequential_type<image, nn::conv<6, kernel<3, 3>, padding<1, 1>>>;
  const traffic_value t = traffic<net>(bind<batch>(1));
  CHECK(t.forward.bytes == t.forward.lower_bound_bytes);
  CHECK(t.backward.bytes == t.backward.lower_bound_bytes);
  // the weights' all_reduce over four workers
  CHECK(t.backward.bytes - t.forward.bytes == 8 * 2 * 3 * (6 * 3 * 9 + 6));
}

}  // namespace tessera::testing
