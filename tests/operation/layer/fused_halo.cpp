#include "tests/support/catch.hpp"
#include "tests/support/images.hpp"

#include <tessera/network.hpp>

namespace tessera::testing {

using namespace engine;

TEST_CASE("layers in fused_halo exchange once and give what they give by themselves", "[plan][refusal]") {
  using three = kernel<3, 3>;
  using apart = sequential_type<image, nn::conv<4, three, padding<1, 1>>, nn::relu, nn::conv<2, three, padding<1, 1>>,
                                nn::max_pool<kernel<2, 2>>>;
  using shared = sequential_type<image, nn::fused_halo<nn::conv<4, three, padding<1, 1>>, nn::relu,
                                                       nn::conv<2, three, padding<1, 1>>, nn::max_pool<kernel<2, 2>>>>;
  STATIC_REQUIRE(std::is_same_v<shared::output, apart::output>);
  STATIC_REQUIRE(shared::program.count == apart::program.count + 1);
  constexpr traffic_value one = traffic<shared>(bind<batch>(1));
  constexpr traffic_value each = traffic<apart>(bind<batch>(1));
  STATIC_REQUIRE(one.forward.messages == 12);  // every worker of 2 x 2 from its three neighbours, once
  STATIC_REQUIRE(each.forward.messages > 2 * one.forward.messages - 1);
  // Worker (0, 0) pools 2 x 2 of 4 x 4: it needs rows [0, 4 + 2), columns [0, 4 + 2) and has [0, 5) x [0, 4).
  STATIC_REQUIRE(box_of(shared::program.nodes[0].record->plan().output(), 0)[2].hi == 6);
  STATIC_REQUIRE(std::is_same_v<sequential_type<image, nn::fused_halo<nn::linear<4>>>,
                                refused_network<within<0, at_layer<0, detail::shared_halo<nn::linear<4>>,
                                                                   verdicts::layer_has_no_window<with::layer<0>>>>,
                                                image>>);
  using ring = nn::conv<4, three, padding<1, 1>, padding_mode<boundary::periodic>>;
  using zeros = nn::conv<4, three, padding<1, 1>>;
  using in_turn = verdicts::windows_do_not_compose<with::dimension<2>, with::layer<0>>;
  STATIC_REQUIRE(
      std::is_same_v<sequential_type<image, nn::fused_halo<ring, zeros>>,
                     refused_network<within<0, at_layer<0, detail::shared_halo<ring, zeros>, in_turn>>, image>>);
}

}  // namespace tessera::testing
