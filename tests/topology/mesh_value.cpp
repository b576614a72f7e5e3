#include "tests/support/catch.hpp"

#include <tessera/core.hpp>

namespace tessera::testing {

using namespace engine;

namespace {

struct a : axis<2> {};
struct b : axis<3> {};
struct both : product<a, b> {};
using grid = mesh<a, b>;

}  // namespace

TEST_CASE("meshes sit on any list of workers, and their parts with them", "[plan][refusal]") {
  using scattered = on_ranks<grid, 5, 0, 7, 2, 9, 4>;
  STATIC_REQUIRE(scattered::value.rank(scattered::value.at(3)) == 2);
  coordinates at;
  REQUIRE(scattered::value.locate(9, at));
  CHECK(at == scattered::value.at(4));
  CHECK_FALSE(scattered::value.contains(1));
  STATIC_REQUIRE(fixed<scattered, a, 1>::value.rank(fixed<scattered, a, 1>::value.at(2)) == 4);
  STATIC_REQUIRE(on_ranks<grid, 0, 1, 2, 3, 4, 5>::value == grid::value);
  STATIC_REQUIRE(detail::mesh_check<on_ranks<grid, 0, 1>>::value.is(code::wrong_number_of_ranks));
  STATIC_REQUIRE(detail::mesh_check<on_ranks<grid, 0, 1, 2, 3, 4, 4>>::value.is(code::placement_overlaps));
}

TEST_CASE("workers have neighbours along an axis: none beyond its ends, or those of a ring", "[plan]") {
  constexpr mesh_value m = placed<grid, 10>::value;  // 10 11 12 / 13 14 15
  constexpr coordinates at = m.at(2);
  STATIC_REQUIRE(neighbour<a>(m, at, 1) == 15);
  STATIC_REQUIRE(neighbour<a>(m, at, -1) == -1);
  STATIC_REQUIRE(neighbour<b>(m, at, 1) == -1);
  STATIC_REQUIRE(neighbour<b>(m, at, -2) == 10);
  STATIC_REQUIRE(neighbour_on_ring<b>(m, at, 1) == 10);
  STATIC_REQUIRE(neighbour_on_ring<b>(m, at, -5) == 10);
  STATIC_REQUIRE(neighbour_on_ring<a>(m, at, -1) == 15);
  // A product of axes is one axis, the last factor fastest.
  STATIC_REQUIRE(neighbour<both>(m, at, 1) == 13);
  STATIC_REQUIRE(neighbour<both>(m, at, 4) == -1);
  STATIC_REQUIRE(neighbour<product<b, a>>(m, at, -1) == 14);
  STATIC_REQUIRE(neighbour_on_ring<both>(m, at, 4) == 10);
  STATIC_REQUIRE(neighbour_on_ring<both>(m, at, INT32_MAX) == 13);  // 2 + 2^31 − 1 = 3 mod 6
  STATIC_REQUIRE(neighbour_on_ring<both>(m, at, INT32_MIN) == 10);
  STATIC_REQUIRE(neighbour<both>(m, at, INT32_MAX) == -1);
  // Which coordinate is next does not depend on where the mesh sits; an axis that it lacks has extent 1.
  struct c : axis<4> {};
  using scattered = on_ranks<grid, 5, 0, 7, 2, 9, 4>;
  STATIC_REQUIRE(neighbour<a>(scattered::value, scattered::value.at(1), 1) == 9);
  STATIC_REQUIRE(neighbour<extent<a, 2>>(scattered::value, scattered::value.at(1), 1) == 9);
  STATIC_REQUIRE(neighbour<c>(m, at, 1) == -1);
  STATIC_REQUIRE(neighbour_on_ring<c>(m, at, 1) == 12);
}

TEST_CASE("the line through a worker is a mesh of its own", "[plan]") {
  constexpr mesh_value m = placed<grid, 10>::value;
  constexpr mesh_value row = line_through<along<b>>(m, m.at(4));
  STATIC_REQUIRE(row.size() == 3);
  STATIC_REQUIRE(row.rank(row.at(0)) == 13);
  STATIC_REQUIRE(row.rank(row.at(2)) == 15);
  STATIC_REQUIRE(line_through<except<b>>(m, m.at(4)) == line_through<along<a>>(m, m.at(4)));
  STATIC_REQUIRE(line_through<except<>>(m, m.at(4)) == m);
}

}  // namespace tessera::testing
