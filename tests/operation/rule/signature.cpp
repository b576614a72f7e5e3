#include "tests/support/catch.hpp"
#include "tests/support/images.hpp"

#include <tessera/network.hpp>

namespace tessera::testing {

using namespace engine;

TEST_CASE("a dimension grows by a role, and its cut with it", "[plan][refusal]") {
  using plane = tensor<partition<grid, blocks<row>, grains<2, col>>, shape<dim<5>, dim<7>>, double>;
  static constexpr signature twice = operation("hw->hw").scaled('h', 2).scaled('w', 3).linear();
  STATIC_REQUIRE(
      std::is_same_v<operation_type<twice, plane>,
                     tensor<partition<grid, grains<2, row>, grains<6, col>>, shape<dim<10>, dim<21>>, double>>);
  STATIC_REQUIRE(operation("hw->hw").scaled('h', 0).check().is(code::role_does_not_fit));
  STATIC_REQUIRE(operation("hw->w").scaled('h', 2).check().is(code::role_does_not_fit));
}

TEST_CASE("a role spreads what each element gives: a cut leaves terms of the overlaps", "[plan][refusal]") {
  static constexpr signature grow = operation("ch->ch").spread('h', sliding{3, 2, 1, 1, 1}.needs(), 9).linear();
  using rows = tensor<partition<mesh<row>, whole, blocks<row>>, shape_of<3, 5>, double>;
  using given = operation_type<grow, rows>;
  STATIC_REQUIRE(
      std::is_same_v<given,
                     tensor<partition<mesh<row>, whole, pending<blocks<row>, 5, 2, -1, 1>>, shape_of<3, 9>, double>>);
  STATIC_REQUIRE(
      std::is_same_v<operation_type<grow, tensor<partition<mesh<row>, whole, whole>, shape_of<3, 5>, double>>,
                     tensor<partition<mesh<row>, whole, whole>, shape_of<3, 9>, double>>);
  // terms of what is not linear
  STATIC_REQUIRE(operation("h->h").spread('h', sliding{3, 2, 1, 1, 1}.needs(), 9).check().is(code::role_does_not_fit));
  // What an output reads may be nothing: of a kernel of one tap that steps by three.
  static constexpr signature sparse =
      operation("h->h").resampled('h', sliding{1, 3, 0, 0, 1}.transposed(), 13).linear();
  STATIC_REQUIRE(sparse.check().ok());
  STATIC_REQUIRE(operation("h->h").resampled('h', window{1, 3, 0, 3}, 13).check().is(code::role_does_not_fit));
}

}  // namespace tessera::testing
