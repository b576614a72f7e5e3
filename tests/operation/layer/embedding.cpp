#include "tests/support/catch.hpp"
#include "tests/support/images.hpp"

#include <tessera/network.hpp>
#include <tessera/operation/layer/layer_values.hpp>

#include <cmath>
#include <limits>

namespace tessera::testing {

using namespace engine;

TEST_CASE(
    "an embedding that counts exchanges a number a row for the counts and one for the norms of rows that are cut, and "
    "a frozen one gets nothing back",
    "[plan][refusal]") {
  using rows = tensor<partition<grid, blocks<row>, invariant<col>>, shape<batch>, std::int64_t>;
  constexpr tensor_value x = value_of<rows>;
  constexpr layer_plan typed =
      nn::embedding<9, 4, cut_out<col>, max_norm<3, 2>, norm_type<1, 0>, scale_grad_by_freq, frozen>::plan(x);
  const nn::embedding_layer value{.rows = 9,
                                  .features = 4,
                                  .cut_out = {"col"},
                                  .max_norm = 1.5,
                                  .norm_type = std::numeric_limits<double>::infinity(),
                                  .scale_grad_by_freq = true,
                                  .frozen = true};
  const layer_plan p = value.plan(x);
  REQUIRE(p.why.ok());
  REQUIRE(p.exchanges() == 2);
  REQUIRE(typed.exchanges() == 2);
  for (int i = 0; i < 2; ++i)
    CHECK(
        (p.from(i) == typed.from(i) && p.to(i) == typed.to(i) && p.exchanged_element(i) == typed.exchanged_element(i)));
  CHECK(p.from(1).placements[1] == partial_by(combine::max));
  // an all_reduce between the two workers of each column: 9 numbers for each
  CHECK(traffic_of_exchange(p, 0).forward.bytes == 4 * 9 * 8);
  CHECK(traffic_of_exchange(p, 1).forward.bytes == 4 * 9 * 8);
  CHECK(traffic_of(p, {{typed.exchanged_element(0)}, 1}).backward.bytes == 0);
  const memory_value taken = peak_memory<sequential_type<rows, nn::embedding<9, 4, frozen>>>(bind<batch>(6));
  CHECK(taken.parameters == 9 * 4 * 4);
  CHECK(taken.gradients == 0);
  const auto refused = [&](const nn::embedding_layer& of, const reason& why) { return of.plan(x).why.is(why); };
  CHECK(refused({.rows = 9, .features = 4, .sparse = true}, code::sparse_not_there));
  CHECK(refused({.rows = 9, .features = 4, .max_norm = -1.0}, code::max_norm_below_zero));
  CHECK(refused({.rows = 9, .features = 4, .max_norm = std::nan("")}, code::max_norm_below_zero));
  CHECK(refused({.rows = 9, .features = 4, .max_norm = 1.0, .norm_type = 0}, code::norm_not_positive));
  CHECK(nn::embedding<9, 4, sparse>::plan(x).why.is(code::sparse_not_there));
  CHECK(nn::embedding<9, 4, max_norm<1, 0>>::plan(x).why.is(code::fraction_without_divisor));
}

}  // namespace tessera::testing
