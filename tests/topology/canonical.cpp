#include "tests/support/catch.hpp"

#include <tessera/core.hpp>

namespace tessera::testing {

using namespace engine;

namespace {

struct row : axis<2> {};
struct col : axis<3> {};
struct one : axis<1> {};
struct batch : dyn {};
using grid = mesh<row, col>;

template <class... Entries>
using over = tensor<partition<grid, Entries...>, shape<batch, dim<7>>, double>;

}  // namespace

TEST_CASE("equal partitions have equal canonical types and equal values", "[plan]") {
  using x = over<blocks<row>, whole>;
  using y = over<blocks<row>, whole, replicate<col>>;
  STATIC_REQUIRE(std::is_same_v<canonical_tensor<y>, x>);
  STATIC_REQUIRE(same(value_of<x>.layout, value_of<y>.layout));
  using p = over<whole, whole, invariant<col>, partial<row>>;
  using q = over<whole, whole, partial<row>, invariant<col>>;
  STATIC_REQUIRE(std::is_same_v<canonical_tensor<p>, q>);
  STATIC_REQUIRE(std::is_same_v<canonical_tensor<q>, q>);
}

TEST_CASE("an axis of extent 1 makes no difference", "[plan]") {
  using with = tensor<partition<mesh<row, one>, blocks<row>, blocks<one>>, shape_of<4, 7>>;
  using without = tensor<partition<mesh<row>, blocks<row>, whole>, shape_of<4, 7>>;
  using meaning = tensor<partition<mesh<row, one>, blocks<row>, whole, partial<one>>, shape_of<4, 7>>;
  STATIC_REQUIRE(same(value_of<with>.layout, value_of<without>.layout));
  STATIC_REQUIRE(same(value_of<meaning>.layout, value_of<without>.layout));
}

TEST_CASE("cotangents swap replicate and partial, haloed and pending, twice to nothing", "[plan]") {
  using x = tensor<partition<grid, haloed<blocks<row>, 9, 1, -1, 1>, blocks<col>>, shape_of<9, 7>, double>;
  using y = tensor<partition<grid, pending<blocks<row>, 9, 1, -1, 1>, blocks<col>>, shape_of<9, 7>, double>;
  STATIC_REQUIRE(std::is_same_v<cotangent_type<x>, y>);
  STATIC_REQUIRE(std::is_same_v<cotangent_type<y>, x>);
  using r = over<whole, whole, invariant<col>>;
  using s = over<whole, whole, partial<row>, invariant<col>>;
  STATIC_REQUIRE(std::is_same_v<cotangent_type<r>, s>);
}

}  // namespace tessera::testing
