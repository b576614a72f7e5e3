#include "tests/support/serial_leaves.hpp"
#include "tests/support/tensors.hpp"

using namespace tessera;
using namespace tessera::engine;
using namespace tessera::testing;

namespace {

using few_rows = tensor<partition<pair, blocks<here>, whole>, shape<dim<4>, dim<3>>, double>;

// Two parameters that say that they are parts of one serial tensor; from `Begin` on the second.
template <index_t Begin>
struct in_parts {
  static constexpr const char* name = "in_parts";
  static constexpr layer_plan plan(const tensor_value& x) {
    layer_plan p = nn::gated<2, no_bias>::plan(x);
    layer_plan q;
    q.add_input(p.given(), p.used());
    q.add_output(p.output());
    for (int i = 0; i < 2; ++i) {
      parameter_value w = p.parameter(i);
      if (i == 1) w.serial.begin = Begin;
      q.add_parameter(w);
    }
    return q;
  }
  static at::Tensor forward(const nn::call& c) { return at::linear(c.used(), c.weight(0)); }
};

}  // namespace

TEST_CASE("a state dict speaks of the serial tensors that parameters are parts of", "[refusal][runtime]") {
  const auto run = in_team<pair>([](auto& t) {
    nn::network<nn::heads<4, 2, 2>, few_rows> net{t, seed{1}};
    nn::state_dict state = nn::state_of(net);
    bool right =
        state.size() == 2 && state.at("0.weight").sizes().equals({16, 3}) && state.at("0.bias").sizes().equals({16});
    for (auto& [key, values] : state) values = at::arange(values.numel(), at::kDouble).view(values.sizes());
    nn::assign(net, state);
    for (const auto& [key, values] : nn::state_of(net)) right = right && at::equal(values, state.at(key));
    net.each_parameter([&](const nn::parameter& p) {
      if (p.path() == "0.k_weight")
        right = right && at::equal(p.stored().local(), state.at("0.weight").narrow(0, 8, 4).view({2, 2, 3}));
    });
    state.erase("0.bias");
    state.at("0.weight") = state.at("0.weight").narrow(0, 0, 15);
    try {
      nn::assign(net, state);
      right = false;
    } catch (const error& e) {
      const std::string said = e.what();
      right = right && said.find("0.bias is missing; 0.weight is Double[15, 3] and not Double[16, 3]") != said.npos;
    }
    return right;
  });
  INFO(run.errors());
  REQUIRE(run.well());
  for (const auto& r : run.results) CHECK(*r);
  const auto asks = [](auto net) { return [](auto& t) { nn::state_of(typename decltype(net)::type(t, seed{1})); }; };
  CHECK(refusals<pair>("none", asks(std::type_identity<nn::sequential<few_rows, in_parts<2>>>{})) == 2);
  CHECK(refusals<pair>("tessera.network.serial", asks(std::type_identity<nn::sequential<few_rows, in_parts<1>>>{})) ==
        2);
  CHECK(refusals<pair>("tessera.network.serial", asks(std::type_identity<nn::sequential<few_rows, in_parts<3>>>{})) ==
        2);
}
