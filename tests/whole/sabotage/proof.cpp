// Compiled by tests/whole/sabotage/check.py against a copy of the headers: with the true rules it must compile, with a
// wrong one it must not.
#include <tessera/core.hpp>

namespace {

struct row : tessera::axis<3> {};
struct col : tessera::axis<5> {};
using grid = tessera::mesh<row, col>;
using from =
    tessera::tensor<tessera::partition<grid, tessera::blocks<row>, tessera::blocks<col>>, tessera::shape_of<100, 77>>;
using to =
    tessera::tensor<tessera::partition<grid, tessera::blocks<col>, tessera::blocks<row>>, tessera::shape_of<100, 77>>;
static_assert(tessera::primitive<from, to>::cost().total == tessera::primitive<from, to>::cost().lower_bound);

// Named and used no further: a primitive holds its adjoint to the law by itself.
using copies =
    tessera::tensor<tessera::partition<grid, tessera::whole, tessera::blocks<col>>, tessera::shape_of<100, 77>>;
using window = tessera::tensor<
    tessera::partition<grid, tessera::haloed<tessera::blocks<row>, 100, 1, -1, 1>, tessera::blocks<col>>,
    tessera::shape_of<100, 77>>;
static_assert(sizeof(tessera::primitive<from, copies>) > 0);
static_assert(sizeof(tessera::primitive<from, window>) > 0);

}  // namespace
