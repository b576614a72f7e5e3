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

/// The code by which a value is refused.
template <class F>
std::string code_of(const F& f) {
  try {
    f();
  } catch (const refused_value& e) {
    return e.why.because->code;
  }
  return "";
}

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

TEST_CASE("more bytes than can be counted are refused, as more elements are", "[refusal]") {
  using x = over<blocks<row>, whole>;
  using y = over<whole, whole>;
  using there = primitive<x, y>;
  using way = composition<there, primitive<y, x>, there>;
  const index_t most = INT64_MAX / (6 * 7 / 2 * 8);  // rows, of which each of 6 workers lacks half, in double
  CHECK(there::bytes(bind<batch>(most / 2 * 2)) == there::cost(bind<batch>(most / 2 * 2)).total * 8);
  CHECK(code_of([&] { there::bytes(bind<batch>(most + 2)); }) == "tessera.cost.overflow");
  CHECK(there::cost(bind<batch>(most + 2)).total > 0);
  CHECK(code_of([&] { way::bytes(bind<batch>(most)); }) == "tessera.cost.overflow");
  CHECK(way::cost(bind<batch>(most)).total == 2 * there::cost(bind<batch>(most)).total);
  CHECK(code_of([&] { way::cost(bind<batch>(6 * most)); }) == "tessera.cost.overflow");
}

TEST_CASE("extents that contradict explicit lengths are refused", "[refusal]") {
  using x = over<lengths<row, dim<5>, dim<5>>, whole>;
  using y = over<whole, whole>;
  using there = primitive<x, y>;
  CHECK(there::cost(bind<batch>(10)).total == primitive<over<blocks<row>, whole>, y>::cost(bind<batch>(10)).total);
  for (const index_t n : {0, 5, 20}) {
    CHECK(code_of([&] { there::plan(bind<batch>(n)); }) == "tessera.lengths.sum");
    CHECK(code_of([&] { there::cost(bind<batch>(n)); }) == "tessera.lengths.sum");
    CHECK(code_of([&] { there::bytes(bind<batch>(n)); }) == "tessera.lengths.sum");
  }
}

}  // namespace tessera::testing
