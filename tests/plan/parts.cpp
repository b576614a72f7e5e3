#include "tests/support/catch.hpp"
#include "tests/support/generate.hpp"

#include <tessera/plan/parts.hpp>

using namespace tessera;
using namespace tessera::testing;

// Parts of dimensions, whatever cuts them and however they are dealt.

TEST_CASE("the largest part is the most that any part holds, of tiles, windows, ranges and zigzags", "[law]") {
  int windows = 0, ranges = 0;
  for (int seed = 1; seed <= trials(3000); ++seed) {
    dice d{static_cast<std::uint64_t>(seed)};
    layout x = roll_layout(d, roll_mesh(d), roll_extents(d, 4, 12), {.haloed = true, .zigzag = true});
    for (int k = 0; k < x.dims.count; ++k) {
      dimension& dim = x.dims[k];
      if (dim.kind == cover::tiled && dim.extent > 1 && !dim.zigzag && d.once_in(3)) {
        const index_t begin = d.roll(0, static_cast<int>(dim.extent) - 1);
        dim.narrow(begin, d.roll(1, static_cast<int>(dim.extent - begin)));
        ++ranges;
      }
      windows += dim.kind != cover::tiled;
      const parts of(x, k);
      index_t most = 0;
      for (int part = 0; part < of.count(); ++part) {
        index_t n = 0;
        for (const interval& held : of.held(part)) n += held.size();
        most = std::max(most, n);
      }
      REQUIRE(of.largest() == most);
    }
  }
  CHECK(windows > trials(1000));
  CHECK(ranges > trials(300));
}
