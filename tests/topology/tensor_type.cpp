#include "tests/support/catch.hpp"
#include "tests/support/images.hpp"

namespace tessera::testing {

using namespace engine;

TEST_CASE("a tensor that another is wanted for is told where they differ", "[refusal]") {
  using cut = partition<grid, whole, whole, blocks<row>, blocks<col>>;
  const tensor_value wanted = value_of<image>;
  const auto given = [&](auto partition_given, auto shape_given, auto element) {
    return check_same(value_of<tensor<decltype(partition_given), decltype(shape_given), decltype(element)>>, wanted);
  };
  using extents = shape<batch, dim<3>, dim<9>, dim<8>>;
  CHECK(given(partition<grid, whole, whole, blocks<row>, blocks<col>, replicate<>>{}, extents{}, double{}).ok());
  CHECK(given(cut{}, extents{}, float{}).is(code::wrong_element));
  CHECK(given(partition<grid, whole, whole, whole>{}, shape<batch, dim<3>, dim<9>>{}, double{}).is(code::ranks_differ));
  const refusal extent = given(cut{}, shape<batch, dim<3>, dim<9>, dim<7>>{}, double{});
  CHECK(
      (extent.is(code::extents_differ) && extent.numbers[0] == 3 && extent.numbers[1] == 8 && extent.numbers[2] == 7));
  const refusal turned = given(partition<grid, whole, whole, blocks<col>, blocks<row>>{}, extents{}, double{});
  CHECK((turned.is(code::wrong_partition) && turned.numbers[0] == 2));
  const refusal grain = given(partition<grid, whole, whole, blocks<row>, grains<3, col>>{}, extents{}, double{});
  CHECK((grain.is(code::wrong_partition) && grain.numbers[0] == 3));
  const refusal elsewhere =
      given(partition<placed<grid, 4>, whole, whole, blocks<row>, blocks<col>>{}, extents{}, double{});
  CHECK((elsewhere.is(code::wrong_partition) && elsewhere.axis.size == 0 && elsewhere.numbers[0] == -1));
  const refusal meaning = check_same(value_of<tensor<partition<grid, whole, invariant<col>>, shape<batch>>>,
                                     value_of<tensor<partition<grid, whole>, shape<batch>>>);
  CHECK((meaning.is(code::wrong_partition) && meaning.axis == text("col") && meaning.numbers[0] == -1));
}

}  // namespace tessera::testing
