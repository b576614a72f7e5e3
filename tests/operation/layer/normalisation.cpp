#include "tests/support/catch.hpp"
#include "tests/support/images.hpp"

#include <tessera/network.hpp>

namespace tessera::testing {

using namespace engine;

TEST_CASE("a normalisation gathers what workers have of its groups, an upsampling what its outputs read", "[plan]") {
  constexpr auto moved = [](auto net) { return traffic<decltype(net)>(bind<batch>(5)); };
  // Of three channels each of four workers gets two numbers from the three others; back it gives as many. Weights and
  // biases are summed.
  constexpr traffic_value channels = moved(sequential_type<image, nn::batch_norm<>>{});
  STATIC_REQUIRE(channels.forward.bytes == 4 * 3 * 2 * 3 * 8);
  STATIC_REQUIRE(channels.forward.bytes == channels.forward.lower_bound_bytes);
  STATIC_REQUIRE(channels.backward.bytes == channels.forward.bytes + 2 * 2 * 3 * 3 * 8);
  // Rows of 8 over two workers: of each of 5 x 3 x 9 one number goes each way.
  STATIC_REQUIRE(moved(sequential_type<image, nn::rms_norm<no_affine>>{}).forward.bytes == 2 * 5 * 3 * 9 * 8);
  STATIC_REQUIRE(
      moved(sequential_type<tensor<partition<grid, blocks<row>, blocks<col>, whole>, shape<batch, dim<3>, dim<4>>>,
                            nn::layer_norm<>>{})
          .forward.bytes == 0);
  // Of 5 x 3 instances each of four workers gets two numbers from the three others.
  STATIC_REQUIRE(moved(sequential_type<image, nn::instance_norm<>>{}).forward.bytes == 4 * 5 * 3 * 2 * 3 * 8);
  // Running means over samples, each of three channels two numbers, have no way back.
  using samples_cut = tensor<partition<grid, blocks<row>, whole, whole>, shape<batch, dim<3>, dim<4>>, double>;
  constexpr traffic_value running = moved(sequential_type<samples_cut, nn::instance_norm<tracking>>{});
  STATIC_REQUIRE(running.forward.bytes == 4 * 3 * 2 * 8);
  STATIC_REQUIRE(running.backward.bytes == 0);
  // Groups of channels that are whole on each of two workers stay where they are; of others, all, each gets two numbers
  // from the other.
  using halves = partition<grid, whole, blocks<row>>;
  STATIC_REQUIRE(moved(sequential_type<tensor<halves, shape<batch, dim<8>>>, nn::group_norm<2>>{}).forward.bytes == 0);
  STATIC_REQUIRE(moved(sequential_type<tensor<halves, shape<batch, dim<8>>>, nn::group_norm<4>>{}).forward.bytes == 0);
  STATIC_REQUIRE(
      moved(sequential_type<tensor<halves, shape<batch, dim<6>>>, nn::group_norm<3, no_affine>>{}).forward.bytes ==
      4 * 5 * 3 * 2 * 8);
  // 9 rows are 5 and 4, 18 are 9 and 9: the second worker reads the fifth. 8 columns and 16 are halves alike.
  STATIC_REQUIRE(moved(sequential_type<image, nn::upsample<factor<2, 2>>>{}).forward.bytes == 5 * 3 * 8 * 8);
  STATIC_REQUIRE(moved(sequential_type<image, nn::upsample<factor<1, 4>>>{}).forward.bytes == 0);
  // To 12 rows of 9 the steps are 3/4, which are exact: 6 and 6, so the first worker reads nothing of the second, which
  // reads the fifth.
  STATIC_REQUIRE(moved(sequential_type<image, nn::upsample<size<12, 16>>>{}).forward.bytes == 5 * 3 * 8 * 8);
  // Steps of 2/3 are not exact: 13 rows are 7 and 6, of [0, 5) and [4, 9), and there may be one more each way: rows 3,
  // 4 and 5 move.
  STATIC_REQUIRE(moved(sequential_type<image, nn::upsample<factor<3, 2>, divisor<2>>>{}).forward.bytes ==
                 5 * 3 * 3 * 8 * 8);
  STATIC_REQUIRE(
      std::is_same_v<after<nn::upsample<factor<2, 3>>>, tensor<partition<grid, whole, whole, blocks<row>, blocks<col>>,
                                                               shape<batch, dim<3>, dim<18>, dim<24>>, double>>);
}

}  // namespace tessera::testing
