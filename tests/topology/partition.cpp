#include "tests/support/catch.hpp"

#include <tessera/core.hpp>
#include <tessera/inspect/text.hpp>

namespace tessera::testing {

using namespace engine;

namespace {

struct a : axis<2> {};
struct b : axis<3> {};
struct both : product<a, b> {};
using grid = mesh<a, b>;

template <class P, class S>
constexpr layout of = value_of<tensor<P, S>>.layout;

template <class T>
constexpr bool spelled_back = same(value_of<canonical_tensor<T>>.layout, value_of<T>.layout);

}  // namespace

TEST_CASE("a product of axes cuts once, its factors one after the other", "[plan]") {
  constexpr layout once = of<partition<grid, blocks<both>>, shape_of<11>>;
  constexpr layout twice = of<partition<grid, blocks<a, b>>, shape_of<11>>;
  CHECK(parts_text(once, 0) == "[0,2) [2,4) [4,6) [6,8) [8,10) [10,11)");
  CHECK(parts_text(twice, 0) == "[0,2) [2,4) [4,6) [6,8) [8,10) [10,11)");
  constexpr layout uneven = of<partition<grid, blocks<both>>, shape_of<10>>;
  CHECK(parts_text(uneven, 0) == "[0,2) [2,4) [4,6) [6,8) [8,9) [9,10)");
  CHECK(parts_text(of<partition<grid, blocks<a, b>>, shape_of<10>>, 0) == "[0,2) [2,4) [4,5) [5,7) [7,9) [9,10)");
  STATIC_REQUIRE_FALSE(same(uneven, of<partition<grid, blocks<a, b>>, shape_of<10>>));
  // Where it comes out even both are one partition, in either spelling.
  STATIC_REQUIRE(
      same(of<partition<grid, blocks<both>>, shape_of<12>>, of<partition<grid, blocks<a, b>>, shape_of<12>>));
  STATIC_REQUIRE(
      same(of<partition<grid, blocks<both>>, shape_of<10>>, of<partition<grid, blocks<product<a, b>>>, shape_of<10>>));
  STATIC_REQUIRE(spelled_back<tensor<partition<grid, blocks<both>>, shape_of<10>>>);
  STATIC_REQUIRE(std::is_same_v<canonical_tensor<tensor<partition<grid, blocks<both>>, shape_of<10>>>,
                                tensor<partition<grid, blocks<product<a, b>>>, shape_of<10>>>);
}

TEST_CASE("windows that lie end to end are tiles, and a grain that comes out even is none", "[plan]") {
  constexpr layout pooled = of<partition<grid, haloed<blocks<b>, 5, 2, 0, 1>>, shape_of<10>>;
  constexpr layout tiles = of<partition<grid, grains<2, b>>, shape_of<10>>;
  CHECK(parts_text(pooled, 0) == "[0,4) [4,8) [8,10)");
  CHECK(parts_text(tiles, 0) == "[0,4) [4,8) [8,10)");
  STATIC_REQUIRE(same(pooled, tiles));
  STATIC_REQUIRE(same(cotangent(pooled), cotangent(tiles)));
  STATIC_REQUIRE(change_between(tiles, pooled).steps.empty());
  STATIC_REQUIRE(same(of<partition<grid, haloed<grains<2, b>, 5, 3, 0, 2>>, shape_of<15>>,
                      of<partition<grid, grains<6, b>>, shape_of<15>>));
  STATIC_REQUIRE(same(of<partition<grid, haloed<blocks<a, b>, 6, 2, 0, 1>>, shape_of<12>>,
                      of<partition<grid, blocks<both>>, shape_of<12>>));
  STATIC_REQUIRE(same(of<partition<grid, grains<2, b>>, shape_of<12>>, of<partition<grid, blocks<b>>, shape_of<12>>));
  // Not those that overlap, leave elements between them, leave a rest or begin in the padding.
  STATIC_REQUIRE_FALSE(same(of<partition<grid, haloed<blocks<b>, 5, 2, 0, 2>>, shape_of<10>>, tiles));
  STATIC_REQUIRE_FALSE(same(of<partition<grid, haloed<blocks<b>, 5, 2, 0, 0>>, shape_of<10>>, tiles));
  STATIC_REQUIRE_FALSE(same(of<partition<grid, haloed<blocks<b>, 5, 2, -1, 0>>, shape_of<10>>, tiles));
  STATIC_REQUIRE_FALSE(same(of<partition<grid, haloed<blocks<b>, 5, 2, 0, 1>>, shape_of<11>>,
                            of<partition<grid, grains<2, b>>, shape_of<11>>));
  STATIC_REQUIRE_FALSE(same(tiles, of<partition<grid, blocks<b>>, shape_of<10>>));
}

TEST_CASE("a product of axes has a placement, a coordinate and a place in a mesh", "[plan]") {
  STATIC_REQUIRE(same(of<partition<grid, whole, partial<both>>, shape_of<4>>,
                      of<partition<grid, whole, partial<a, b>>, shape_of<4>>));
  constexpr layout held = of<partition<grid, whole, on<both, 4>>, shape_of<4>>;
  STATIC_REQUIRE(held.placements[0].coordinate == 1);
  STATIC_REQUIRE(held.placements[1].coordinate == 1);
  STATIC_REQUIRE(mesh<both>::value == grid::value);
  STATIC_REQUIRE(both::axis_extent == 6);
}

TEST_CASE("lengths are parts of any size, also none", "[plan]") {
  using odd = partition<grid, lengths<b, dim<4>, dim<0>, dim<6>>>;
  CHECK(parts_text(of<odd, shape_of<10>>, 0) == "[0,4) [4,4) [4,10)");
  STATIC_REQUIRE(spelled_back<tensor<odd, shape_of<10>>>);
  STATIC_REQUIRE(std::is_same_v<canonical_tensor<tensor<odd, shape_of<10>>>, tensor<odd, shape_of<10>>>);
  STATIC_REQUIRE(same(of<partition<grid, lengths<b, dim<4>, dim<3>, dim<3>>>, shape_of<10>>,
                      of<partition<grid, lengths<b, dim<4>, dim<3>, dim<3>>>, shape_of<10>>));
  using by_both = partition<grid, lengths<both, dim<1>, dim<2>, dim<3>, dim<0>, dim<0>, dim<4>>>;
  CHECK(parts_text(of<by_both, shape_of<10>>, 0) == "[0,1) [1,3) [3,6) [6,6) [6,6) [6,10)");
  STATIC_REQUIRE(spelled_back<tensor<by_both, shape_of<10>>>);
  // A change is planned like any other: 10 elements from 4 0 6 to 4 3 3.
  constexpr cost c = cost_of(change_between(of<odd, shape_of<10>>, of<partition<grid, blocks<b>>, shape_of<10>>));
  STATIC_REQUIRE(c.total == 2 * 3);
}

TEST_CASE("lengths that are to be learned say nothing of a part, whoever is asked", "[refusal]") {
  layout x = of<partition<grid, whole, lengths<b>>, shape<dim<4>, dim<10>>>;
  const auto refused = [](auto&& asks) {
    try {
      asks();
    } catch (const refused_value& e) {
      return e.why.is(code::lengths_not_known) && e.why.numbers[0] == 1;
    }
    return false;
  };
  const auto refuses_all = [&] {
    const parts p{x, 1};
    return refused([&] { static_cast<void>(p.held(1)); }) && refused([&] { static_cast<void>(p.touching({3, 5})); }) &&
           refused([&] { static_cast<void>(p.holders({3, 5})); }) &&
           refused([&] { static_cast<void>(held_by(x, 1)); }) && refused([&] { static_cast<void>(box_of(x, 5)); });
  };
  CHECK(refuses_all());
  x.dims[1].kind = cover::haloed;
  x.dims[1].outputs = 10;
  x.dims[1].needs = {1, -1, 1, 1};
  CHECK(refuses_all());
  CHECK(parts{x, 1}.count() == 3);
  constexpr index_t bounds[]{0, 3, 3, 10};
  x.dims[1].bounds = bounds;
  CHECK_FALSE(refuses_all());
}

TEST_CASE("a turned deal gives every coordinate the part of another", "[plan]") {
  using turned = partition<grid, rotated<blocks<b>, 1>>;
  CHECK(parts_text(of<turned, shape_of<7>>, 0) == "[3,5) [5,7) [0,3)");
  STATIC_REQUIRE(
      same(of<partition<grid, rotated<blocks<b>, 3>>, shape_of<7>>, of<partition<grid, blocks<b>>, shape_of<7>>));
  STATIC_REQUIRE(spelled_back<tensor<turned, shape_of<7>>>);
  constexpr transfer ring{map::move, of<partition<grid, blocks<b>>, shape_of<6>>, of<turned, shape_of<6>>};
  STATIC_REQUIRE(collective_of(ring) == collective::neighbours);
  STATIC_REQUIRE(cost_of(ring).busiest_messages == 1);
}

}  // namespace tessera::testing
