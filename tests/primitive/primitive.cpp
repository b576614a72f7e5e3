#include "tests/support/catch.hpp"

#include <tessera/functions.hpp>
#include <tessera/network.hpp>

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

TEST_CASE("operations and verbs lead between meshes that differ by an axis of extent 1", "[plan]") {
  using with = tensor<partition<mesh<row, one>, blocks<one, row>, whole>, shape_of<4, 7>>;
  using without = tensor<partition<mesh<row>, blocks<row>, whole>, shape_of<4, 7>>;
  STATIC_REQUIRE(std::is_same_v<result_type<functions::add, with, without>,
                                tensor<partition<mesh<row, one>, blocks<row>, whole>, shape_of<4, 7>>>);
  STATIC_REQUIRE(std::is_same_v<result_type<functions::add, without, with>, without>);
  using copies = tensor<partition<mesh<row>, whole, whole>, shape_of<4, 7>>;
  STATIC_REQUIRE(primitive<with, copies>::verb == verb::all_gather);
  STATIC_REQUIRE(adjoint<primitive<with, copies>>::verb == verb::reduce_scatter);
  STATIC_REQUIRE(named_primitive<verb::all_gather, with, copies>::cost().total == 4 * 7);
  STATIC_REQUIRE(primitive<with, without>::verb == verb::nothing);
  STATIC_REQUIRE(Primitive<composition<primitive<copies, with>, primitive<without, copies>>>);
}

TEST_CASE("primitives name their verbs and adjoints", "[plan]") {
  using x = over<blocks<row>, whole>;
  using y = over<whole, whole>;
  using gather_rows = primitive<x, y>;
  STATIC_REQUIRE(Primitive<gather_rows>);
  STATIC_REQUIRE(gather_rows::verb == verb::all_gather);
  STATIC_REQUIRE(adjoint<gather_rows>::verb == verb::reduce_scatter);
  STATIC_REQUIRE(std::is_same_v<adjoint<adjoint<gather_rows>>, gather_rows>);
  STATIC_REQUIRE(gather_rows::cost(bind<batch>(10)).total == 5 * 7 * 6);
  using z = over<whole, blocks<row>>;
  using both = composition<gather_rows, primitive<y, z>>;
  STATIC_REQUIRE(Primitive<both>);
  STATIC_REQUIRE(std::is_same_v<adjoint<both>, composition<adjoint<primitive<y, z>>, adjoint<gather_rows>>>);
  STATIC_REQUIRE(primitive<x, z>::verb == verb::all_to_all);
  using spelt = primitive<over<blocks<row>, whole, replicate<col>>, over<whole, whole, replicate<row>>>;
  STATIC_REQUIRE(spelt::verb == verb::all_gather);
  STATIC_REQUIRE(std::is_same_v<adjoint<adjoint<spelt>>, gather_rows>);
  using itself = primitive<over<whole, whole, partial<row>, invariant<col>>, over<whole, whole, invariant<col>>>;
  STATIC_REQUIRE(std::is_same_v<adjoint<itself>, itself>);
  STATIC_REQUIRE(primitive<over<whole, whole, invariant<row>>, y>::verb == verb::copy_in);
  STATIC_REQUIRE(primitive<over<whole, whole, invariant<row>>, y>::cost(bind<batch>(10)).total == 0);
}

TEST_CASE("what does not lead back is no primitive", "[refusal]") {
  using x = over<blocks<row>, whole>;
  using y = over<whole, whole>;
  struct back {
    using domain = y;  // y* is what an adjoint starts from
    using codomain = x;
    using adjoint = primitive<x, y>;
  };
  struct crooked {
    using domain = x;
    using codomain = y;
    using adjoint = back;
  };
  struct lonely {
    using domain = x;
    using codomain = y;
  };
  STATIC_REQUIRE_FALSE(Primitive<crooked>);
  STATIC_REQUIRE_FALSE(Primitive<lonely>);
  STATIC_REQUIRE_FALSE(Primitive<int>);
  struct straight {
    using domain = x;
    using codomain = y;
    using adjoint = primitive<cotangent_type<y>, cotangent_type<x>>;
  };
  STATIC_REQUIRE(Primitive<straight>);
  STATIC_REQUIRE(std::is_same_v<composition<straight, primitive<y, x>>::domain, x>);
}

TEST_CASE("a verb is the identity where its axes have extent 1", "[plan]") {
  struct u : axis<1> {};
  struct v : axis<1> {};
  using alone = mesh<u, v>;
  using tiles = tensor<partition<alone, blocks<u>, blocks<v>>, shape_of<8, 8>>;
  using halos = tensor<partition<alone, haloed<blocks<u>, 8, 1, -1, 1>, blocks<v>>, shape_of<8, 8>>;
  using copies = tensor<partition<alone, whole, whole>, shape_of<8, 8>>;
  using terms = tensor<partition<alone, whole, whole, partial<u>>, shape_of<8, 8>>;
  STATIC_REQUIRE(named_primitive<verb::halo_exchange, tiles, halos>::cost().total == 0);
  STATIC_REQUIRE(named_primitive<verb::halo_accumulate, cotangent_type<halos>, cotangent_type<tiles>>::cost().total ==
                 0);
  STATIC_REQUIRE(named_primitive<verb::all_gather, tiles, copies>::plan().steps.empty());
  STATIC_REQUIRE(named_primitive<verb::all_reduce, terms, copies>::plan().steps.empty());
}

}  // namespace tessera::testing
