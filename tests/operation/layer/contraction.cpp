#include "tests/support/catch.hpp"
#include "tests/support/images.hpp"

#include <tessera/network.hpp>

namespace tessera::testing {

using namespace engine;

TEST_CASE("the weight's cut is the cheapest for one sample, whatever the batch", "[plan]") {
  using features = tensor<partition<grid, whole, blocks<row, col>>, shape<batch, dim<96>>, double>;
  const layer_plan narrow = nn::linear<10>::plan(value_of<features>);
  REQUIRE(narrow.why.ok());
  CHECK(narrow.stored(0).levels(1) == 2);  // few outputs: reduce them
  const layer_plan wide = nn::linear<1000>::plan(value_of<features>);
  CHECK(wide.stored(0).levels(0) == 2);  // few inputs: gather them
  CHECK(same(wide.output(), [] {
    layout x = value_of<features>.layout;
    x.dims[1].extent = 1000;
    return x;
  }()));
}

TEST_CASE("the weight's cut is the cheapest for one sample, whatever the lengths of the batch's parts", "[plan]") {
  const index_t begins[]{0, 1, 6};
  layout x = value_of<tensor<partition<grid, blocks<row>, blocks<col>>, shape_of<6, 96>, double>>.layout;
  x.dims[0].bounds = begins;
  const layer_plan p = nn::linear<10>::plan({x, element::float64});
  REQUIRE(p.why.ok());
  CHECK(p.stored(0).levels(1) == 1);
}

TEST_CASE("a bias of what has a halo is stored without it", "[plan]") {
  using features = tensor<partition<grid, whole, whole>, shape_of<4, 6>, double>;
  using with_halo = partition<grid, whole, haloed<blocks<row>, 8, 1, -1, 1>>;
  const layer_plan p = nn::linear<8, output_as<with_halo>>::plan(value_of<features>);
  REQUIRE(p.why.ok());
  CHECK(p.weight(1).dims[0].kind == cover::haloed);
  CHECK((p.stored(1).dims[0].kind == cover::tiled && p.stored(1).levels(0) == 1));
}

TEST_CASE("outputs are cut in grains where the layer says so", "[plan]") {
  using features = tensor<partition<mesh<row>, whole, whole>, shape<batch, dim<6>>, double>;
  using heads = sequential_type<features, nn::linear<24, cut_out<grains<8, row>>>>;
  STATIC_REQUIRE(std::is_same_v<heads::output,
                                tensor<partition<mesh<row>, whole, grains<8, row>>, shape<batch, dim<24>>, double>>);
  const layer_plan p = nn::linear<24, cut_out<grains<8, row>>>::plan(value_of<features>);
  CHECK((p.stored(0).dims[0].grain() == 8 && p.stored(1).dims[0].grain() == 8));
}

TEST_CASE("column and row forms are spellings", "[plan]") {
  struct model : axis<4> {};
  struct data : axis<2> {};
  using m = mesh<data, model>;
  using x = tensor<partition<m, blocks<data>, whole>, shape<batch, dim<12>>, double>;
  using column = typename sequential_type<x, nn::linear<8, cut_out<model>>>::output;
  STATIC_REQUIRE(
      std::is_same_v<column, tensor<partition<m, blocks<data>, blocks<model>>, shape<batch, dim<8>>, double>>);
  using row_form = sequential_type<column, nn::linear<5, cut_in<model>, output_as<partition<m, blocks<data>, whole>>>>;
  STATIC_REQUIRE(std::is_same_v<typename row_form::output,
                                tensor<partition<m, blocks<data>, whole>, shape<batch, dim<5>>, double>>);
  const traffic_value t = traffic<row_form>(bind<batch>(2));
  CHECK(t.forward.bytes == 2 * 4 * (2 * 5 * 3 * 8 / 4));  // all_reduce of 1 x 5 over four, on two lines
}

TEST_CASE("a linear layer takes as many dimensions as a tensor has", "[plan]") {
  using deep =
      tensor<partition<grid, whole, whole, whole, whole, whole, whole, whole, whole>, shape_of<1, 2, 1, 2, 1, 2, 1, 4>>;
  STATIC_REQUIRE(sequential_type<deep, nn::linear<3>>::program.count == 1);
}

namespace {

struct height : dyn {};

/// Whether a layer stores its weight alike for a type and for all extents that run time may know.
template <class Layer, class T>
bool as_its_type() {
  const layer_plan typed = Layer::plan(value_of<T>);
  bool alike = typed.why.ok();
  for (index_t n = 3; n < 40; ++n) {
    tensor_value x = value_of<T>;
    bind_extent(x.layout, short_name_of<height>(), n);
    const layer_plan p = Layer::plan(x);
    alike = alike && p.why.ok() && same(p.stored(0), typed.stored(0)) && same(p.weight(0), typed.weight(0));
  }
  return alike;
}

}  // namespace

TEST_CASE("the weight's cut is that of the type, whatever extents run time knows", "[law]") {
  using lines = tensor<partition<grid, whole, blocks<row, col>, whole>, shape<batch, dim<8>, height>, double>;
  CHECK(as_its_type<nn::conv<2, kernel<3>>, lines>());
  CHECK(as_its_type<nn::conv<8, kernel<3>>, lines>());
  CHECK(as_its_type<nn::conv<8, kernel<3>, padding<4>>, lines>());
  CHECK(as_its_type<nn::conv<8, kernel<3>, stride<2>, padding<1>>, lines>());
  CHECK(as_its_type<nn::conv_transpose<2, kernel<2>, stride<4>>, lines>());
  CHECK(as_its_type<nn::conv_transpose<5, kernel<3>, stride<2>>, lines>());
  CHECK(as_its_type<nn::conv_transpose<20, kernel<2>, stride<2>>, lines>());
  using parts = tensor<partition<grid, whole, blocks<row>, blocks<col>>, shape<batch, dim<8>, height>, double>;
  CHECK(as_its_type<nn::conv_transpose<2, kernel<3>, stride<3>>, parts>());
  CHECK(as_its_type<nn::conv_transpose<8, kernel<4>, stride<2>, padding<1>>, parts>());
  CHECK(as_its_type<nn::conv_transpose<2, kernel<5>, stride<2>>, parts>());
}

}  // namespace tessera::testing
