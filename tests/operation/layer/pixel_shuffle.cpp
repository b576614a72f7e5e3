#include "tests/support/catch.hpp"
#include "tests/support/images.hpp"

#include <tessera/network.hpp>

namespace tessera::testing {

using namespace engine;

namespace {

struct height : dyn {};

/// Whether a layer gives what its type says, whatever extents run time may know.
template <class Layer, class Cut>
bool as_its_type() {
  using lines = tensor<partition<grid, whole, whole, Cut>, shape<batch, dim<8>, height>, double>;
  const layer_plan typed = Layer::plan(value_of<lines>);
  bool alike = typed.why.ok();
  for (index_t n = 0; n < 40; n += 2) {
    const layer_plan p =
        Layer::plan({bound(value_of<lines>.layout, short_name_of<height>(), n), value_of<lines>.element});
    if (!p.why.ok()) return false;
    layout used = typed.used();
    used.dims[2].extent = n;
    layout gives = typed.output();
    gives.dims[2].extent = p.output().dims[2].extent;
    alike = alike && same(canonical(p.used()), canonical(used)) && same(canonical(p.output()), canonical(gives));
  }
  return alike;
}

}  // namespace

TEST_CASE("elements change places between channels and space as the type has them cut, however many there are",
          "[law]") {
  CHECK(as_its_type<nn::pixel_unshuffle<2>, blocks<row>>());
  CHECK(as_its_type<nn::pixel_unshuffle<2>, zigzag<row>>());
  CHECK(as_its_type<nn::pixel_unshuffle<2>, grains<2, row>>());
  CHECK(as_its_type<nn::pixel_unshuffle<2>, blocks<row, col>>());
  CHECK(as_its_type<nn::pixel_shuffle<2>, zigzag<row>>());
}

}  // namespace tessera::testing
