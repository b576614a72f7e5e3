#include "tests/support/catch.hpp"
#include "tests/support/images.hpp"

namespace tessera::testing {

using namespace engine;

TEST_CASE("a layout says what a kernel needs", "[plan]") {
  const layout x = value_of<tensor<partition<mesh<row>, blocks<row>>, shape_of<10>>>.layout;
  CHECK(same(x.halo(0, {3, 2, 1, 1, 1}),
             value_of<tensor<partition<mesh<row>, haloed<blocks<row>, 5, 2, -1, 1>>, shape_of<10>>>.layout));
}

}  // namespace tessera::testing
