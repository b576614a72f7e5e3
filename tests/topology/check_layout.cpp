#include "tests/support/catch.hpp"

#include <tessera/core.hpp>

namespace tessera::testing {

using namespace engine;

namespace {

struct a : axis<2> {};
struct b : axis<3> {};
using grid = mesh<a, b>;

template <class P, class S>
constexpr layout of = value_of<tensor<P, S>>.layout;

template <class T>
constexpr bool spelled_back = same(value_of<canonical_tensor<T>>.layout, value_of<T>.layout);

}  // namespace

TEST_CASE("terms combine in other ways than sums, and two ways do not mix", "[plan][refusal]") {
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

TEST_CASE("layout values that mean nothing are refused with their numbers", "[refusal]") {
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
