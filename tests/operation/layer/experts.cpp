#include "tests/support/catch.hpp"

#include <tessera/network.hpp>
#include <tessera/operation/layer/layer_values.hpp>

#include <string_view>

namespace tessera::testing {

using namespace engine;

TEST_CASE("experts have their weights where they are, and move what a linear layer of each would", "[plan]") {
  struct expert : axis<2> {};
  struct data : axis<3> {};
  struct model : axis<2> {};
  using cube = mesh<expert, data, model>;
  using slots = tensor<partition<cube, blocks<expert>, blocks<data>, whole, blocks<model>>,
                       shape<dim<5>, dim<7>, dim<2>, dim<6>>, double>;
  using columns = nn::experts<5, 4, cut_out<model>>;
  using rows = nn::experts<5, 4, cut_in<model>>;
  const layer_plan p = columns::plan(value_of<slots>);
  REQUIRE(p.why.ok());
  using weight =
      tensor<partition<cube, blocks<expert>, whole, blocks<model>, invariant<data>>, shape_of<5, 6, 4>, double>;
  using bias =
      tensor<partition<cube, blocks<expert>, whole, blocks<model>, invariant<data>>, shape_of<5, 1, 4>, double>;
  CHECK((same(p.stored(0), value_of<weight>.layout) && same(p.stored(1), value_of<bias>.layout)));
  CHECK(p.parameter(0).initial == init::usual(6));
  CHECK(p.parameter(1).initial == init::usual(6));
  STATIC_REQUIRE(std::is_same_v<sequential_type<slots, columns>::output, sequential_type<slots, rows>::output>);
  STATIC_REQUIRE(std::is_same_v<sequential_type<slots, columns>::output,
                                tensor<partition<cube, blocks<expert>, blocks<data>, whole, blocks<model>>,
                                       shape<dim<5>, dim<7>, dim<2>, dim<4>>, double>>);
  // Gathered: each worker lacks one half of the features of its slots; reduced: it gets a term of each of its results.
  // an all_reduce of all weights over the slots' three workers
  constexpr index_t gradients = 2 * (3 - 1) * 5 * (6 + 1) * 4;
  constexpr traffic_value gathered = traffic<sequential_type<slots, columns>>();
  STATIC_REQUIRE(gathered.forward.bytes == 8 * 5 * 7 * 2 * 6);
  STATIC_REQUIRE(gathered.backward.bytes == 8 * (5 * 7 * 2 * 6 + gradients));
  constexpr traffic_value reduced = traffic<sequential_type<slots, rows>>();
  STATIC_REQUIRE(reduced.forward.bytes == 8 * 5 * 7 * 2 * 4);
  STATIC_REQUIRE(reduced.backward.bytes == reduced.forward.bytes + 8 * gradients);
  // Stored over the slots' workers too: each lacks two thirds of its experts' weights, which come twice (a bias once,
  // which backward does not read), and gets two terms of its part of their gradient.
  constexpr traffic_value stored = traffic<sequential_type<slots, nn::sharded_over<columns, data>>>();
  STATIC_REQUIRE(stored.forward.bytes == gathered.forward.bytes + 8 * gradients / 2);
  STATIC_REQUIRE(stored.backward.bytes == gathered.forward.bytes + 8 * (gradients / 2 + (3 - 1) * 5 * 6 * 4));
  for (const traffic_value& t : {gathered, reduced, stored})
    CHECK((t.forward.bytes == t.forward.lower_bound_bytes && t.backward.bytes == t.backward.lower_bound_bytes));
  // Without a word from the program the weights' cut is that of a linear layer: the fewer of inputs and outputs move.
  CHECK(nn::experts<5, 4>::plan(value_of<slots>).stored(0).levels(1) == 1);
  CHECK(nn::experts<5, 40>::plan(value_of<slots>).stored(0).levels(2) == 1);
  CHECK(nn::experts_layer{.experts = 5, .out = 4, .cut_out = {"model"}}.plan(value_of<slots>).output() == p.output());
}

TEST_CASE("gated experts gather their slots once, and are one serial layer of experts", "[plan]") {
  struct expert : axis<2> {};
  struct data : axis<3> {};
  struct model : axis<2> {};
  using cube = mesh<expert, data, model>;
  using slots = tensor<partition<cube, blocks<expert>, blocks<data>, whole, blocks<model>>,
                       shape<dim<5>, dim<7>, dim<2>, dim<6>>, double>;
  using layer = nn::gated_experts<5, 3, cut_out<model>>;
  const layer_plan p = layer::plan(value_of<slots>);
  REQUIRE(p.why.ok());
  using weight =
      tensor<partition<cube, blocks<expert>, whole, blocks<model>, invariant<data>>, shape_of<5, 6, 3>, double>;
  using bias =
      tensor<partition<cube, blocks<expert>, whole, blocks<model>, invariant<data>>, shape_of<5, 1, 3>, double>;
  REQUIRE(p.parameters() == 4);
  for (int i = 0; i < 4; ++i) {
    CHECK(same(p.stored(i), i % 2 == 0 ? value_of<weight>.layout : value_of<bias>.layout));
    CHECK(p.parameter(i).initial == init::usual(6));
    const serial_view is = p.parameter(i).serial;
    CHECK(std::string_view(is.name) == (i % 2 == 0 ? "weight" : "bias"));
    CHECK(serial_view{nullptr, is.dimension, is.factors, is.begin, is.whole} ==
          serial_view{nullptr, 2, 1, i < 2 ? 0 : 3, 6});
  }
  using half = tensor<partition<cube, blocks<expert>, blocks<data>, whole, blocks<model>>,
                      shape<dim<5>, dim<7>, dim<2>, dim<3>>, double>;
  STATIC_REQUIRE(std::is_same_v<sequential_type<slots, layer>::outputs, detail::type_list<half, half>>);
  constexpr index_t halves = 2 * 5 * (6 + 1) * 3;  // of weight and bias
  constexpr traffic_value gathered = traffic<sequential_type<slots, layer>>();
  STATIC_REQUIRE(gathered.forward.bytes == 8 * 5 * 7 * 2 * 6);
  STATIC_REQUIRE(gathered.backward.bytes == 8 * (5 * 7 * 2 * 6 + 2 * (3 - 1) * halves));
  constexpr traffic_value stored = traffic<sequential_type<slots, nn::sharded_over<layer, data>>>();
  STATIC_REQUIRE(stored.forward.bytes == gathered.forward.bytes + 8 * (3 - 1) * halves);
  STATIC_REQUIRE(stored.backward.bytes == gathered.forward.bytes + 8 * (3 - 1) * (halves + 2 * 5 * 6 * 3));
  for (const traffic_value& t : {gathered, stored})
    CHECK((t.forward.bytes == t.forward.lower_bound_bytes && t.backward.bytes == t.backward.lower_bound_bytes));
  const layer_plan of_values =
      nn::gated_experts_layer{.experts = 5, .out = 3, .cut_out = {"model"}}.plan(value_of<slots>);
  CHECK((of_values.output() == p.output() && of_values.output(1) == p.output(1)));
}

}  // namespace tessera::testing
