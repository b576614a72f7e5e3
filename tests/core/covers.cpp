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

TEST_CASE("a product of axes cuts once, its factors one after the other") {
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

TEST_CASE("windows that lie end to end are tiles, and a grain that comes out even is none") {
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

TEST_CASE("a product of axes has a meaning, a coordinate and a place in a mesh") {
  STATIC_REQUIRE(same(of<partition<grid, whole, partial<both>>, shape_of<4>>,
                      of<partition<grid, whole, partial<a, b>>, shape_of<4>>));
  constexpr layout held = of<partition<grid, whole, on<both, 4>>, shape_of<4>>;
  STATIC_REQUIRE(held.placements[0].coordinate == 1);
  STATIC_REQUIRE(held.placements[1].coordinate == 1);
  STATIC_REQUIRE(mesh<both>::value == grid::value);
  STATIC_REQUIRE(both::axis_extent == 6);
}

TEST_CASE("lengths are parts of any size, also none") {
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

TEST_CASE("lengths that are to be learned say nothing of a part, whoever is asked") {
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

TEST_CASE("a turned deal gives every coordinate the part of another") {
  using turned = partition<grid, rotated<blocks<b>, 1>>;
  CHECK(parts_text(of<turned, shape_of<7>>, 0) == "[3,5) [5,7) [0,3)");
  STATIC_REQUIRE(
      same(of<partition<grid, rotated<blocks<b>, 3>>, shape_of<7>>, of<partition<grid, blocks<b>>, shape_of<7>>));
  STATIC_REQUIRE(spelled_back<tensor<turned, shape_of<7>>>);
  constexpr transfer ring{map::move, of<partition<grid, blocks<b>>, shape_of<6>>, of<turned, shape_of<6>>};
  STATIC_REQUIRE(collective_of(ring) == collective::neighbours);
  STATIC_REQUIRE(cost_of(ring).busiest_messages == 1);
}

TEST_CASE("meshes sit on any list of workers, and their parts with them") {
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

TEST_CASE("workers have neighbours along an axis: none beyond its ends, or those of a ring") {
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

TEST_CASE("the line through a worker is a mesh of its own") {
  constexpr mesh_value m = placed<grid, 10>::value;
  constexpr mesh_value row = line_through<along<b>>(m, m.at(4));
  STATIC_REQUIRE(row.size() == 3);
  STATIC_REQUIRE(row.rank(row.at(0)) == 13);
  STATIC_REQUIRE(row.rank(row.at(2)) == 15);
  STATIC_REQUIRE(line_through<except<b>>(m, m.at(4)) == line_through<along<a>>(m, m.at(4)));
  STATIC_REQUIRE(line_through<except<>>(m, m.at(4)) == m);
}

TEST_CASE("terms combine in other ways than sums, and two ways do not mix") {
  using largest = partition<grid, whole, partial<a, max>>;
  STATIC_REQUIRE(of<largest, shape_of<4>>.placements[0].with == combine::max);
  STATIC_REQUIRE(spelled_back<tensor<largest, shape_of<4>>>);
  STATIC_REQUIRE(std::is_same_v<canonical_tensor<tensor<largest, shape_of<4>>>, tensor<largest, shape_of<4>>>);
  constexpr layout none = of<partition<grid, whole>, shape_of<4>>;
  constexpr change c = change_between(of<largest, shape_of<4>>, none);
  STATIC_REQUIRE(c.steps[0].kind == map::fold);
  STATIC_REQUIRE(c.steps[0].with == combine::max);

  layout x = of<partition<grid, whole, partial<a, max>, partial<b, max>>, shape_of<4>>;
  CHECK(check(x).ok());
  for (combine other : {combine::sum, combine::min, combine::prod, combine::any, combine::all}) {
    x.placements[1].with = other;
    const refusal why = check(x);
    CHECK((why.is(code::mixed_combines) && why.axis == text("b") && why.numbers[0] == -1));
  }
  x.mesh.axes[1].extent = 1;  // one term is its own combine
  CHECK(check(x).ok());
  // The terms of a window are sums; its copies are no terms.
  layout window = of<partition<grid, whole, pending<blocks<b>, 4, 1, -1, 1>, partial<a>>, shape_of<2, 4>>;
  window.placements[0].with = combine::max;
  CHECK((check(window).is(code::mixed_combines) && check(window).axis == text("a") && check(window).numbers[0] == 1));
  window.dims[1].kind = cover::haloed;
  CHECK(check(window).ok());
  window.dims[1].kind = cover::pending;
  window.placements[0].with = combine::sum;
  CHECK(check(window).ok());
}

TEST_CASE("layout values that mean nothing are refused with their numbers") {
  layout x = of<partition<grid, blocks<b>>, shape_of<10>>;
  const index_t short_of[]{0, 4, 4, 9};
  x.dims[0].bounds = short_of;
  CHECK(check(x).is(code::lengths_do_not_add_up));
  CHECK(check(x).numbers[2] == 9);
  const index_t backwards[]{0, 4, 3, 10};
  x.dims[0].bounds = backwards;
  CHECK(check(x).is(code::lengths_do_not_add_up));
  const index_t right[]{0, 4, 4, 10};
  x.dims[0].bounds = right;
  CHECK(check(x).ok());
  layout wide = of<partition<grid, haloed<blocks<b>, 3, 1, -3, 3, 1, boundary::reflect>>, shape_of<4>>;
  wide.dims[0].extent = 3;
  CHECK(check(wide).is(code::reflection_too_wide));
  wide.dims[0].extent = 4;
  CHECK(check(wide).ok());
}

}  // namespace tessera::testing
