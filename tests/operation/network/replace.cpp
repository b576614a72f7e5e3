#include "tests/support/catch.hpp"

#include <tessera/functions.hpp>
#include <tessera/network.hpp>
#include <tessera/nn/network/program_path.hpp>

#include <string>
#include <vector>

using namespace tessera;
using namespace tessera::engine;

// Networks that are read with other parts in place of some.

namespace replaced {

struct lines : axis<2> {};
using grid = mesh<lines>;
using rows = tensor<partition<grid, blocks<lines>, whole>, shape<dim<12>, dim<6>>, float>;

using block = nn::chain<nn::linear<6>, nn::relu, nn::linear<6>>;
template <class Block, class Activation>
struct residual_of {
  constexpr auto operator()(auto x) const { return x + (x | Block{} | Activation{}); }
};
using residual = residual_of<block, nn::relu>;
template <class Activation>
using reading = residual_of<nn::chain<nn::linear<6>, Activation, nn::linear<6>>, Activation>;
template <class Part>
using of_a_block = residual_of<Part, nn::relu>;
struct by_function {
  constexpr auto operator()(auto x) const { return relu(x); }
};
template <class... Parts>
using plain = network_type<nn::chain<Parts...>, rows>;
template <class Predicate, class Instead, class... Parts>
using read_net = network_type<nn::replace<nn::chain<Parts...>, Predicate, Instead>, rows>;

/// What is written down: each node's place in the keys, and its layer.
template <class N>
std::vector<std::string> nodes() {
  std::vector<std::string> all;
  const auto& program = N::program;
  for (int i = 0; i < program.count; ++i)
    all.push_back(detail::path_of(program, program.nodes[i]) + " " + program.nodes[i].record->name);
  return all;
}

struct is_relu {
  constexpr bool operator()(const nn::relu&) const { return true; }
};
struct is_named_relu {
  constexpr bool operator()(std::string_view name) const { return name == "relu"; }
};
struct is_block {
  constexpr bool operator()(const block&) const { return true; }
};
struct is_linear {
  constexpr bool operator()(std::string_view name) const { return name == "linear"; }
};
template <index_t Out>
struct gives {
  constexpr bool operator()(const auto& layer) const
    requires requires { layer.description().out; }
  {
    return layer.description().out == Out;
  }
};

/// The same layer without a bias.
struct without_bias {
  template <class L>
  struct made {
    using type = L;
  };
  template <index_t Out, class... Options>
  struct made<nn::linear<Out, Options...>> {
    using type = nn::linear<Out, Options..., no_bias>;
  };
  template <class L>
  using in_place_of = typename made<L>::type;
};

}  // namespace replaced

TEST_CASE("each layer for which a predicate holds is read as another one, in its place", "[plan]") {
  using namespace replaced;
  using meant = plain<nn::linear<6>, nn::dropout<>, reading<nn::dropout<>>, nn::dropout<>>;
  CHECK(nodes<read_net<is_relu, nn::dropout<>, nn::linear<6>, nn::relu, residual, nn::relu>>() == nodes<meant>());
  // a function of flows is no part: it stays
  CHECK(nodes<read_net<is_named_relu, nn::dropout<>, by_function>>() == nodes<plain<by_function>>());
  CHECK(nodes<read_net<is_linear, nn::chain<nn::linear<9, no_bias>, nn::linear<6>>, nn::linear<6>, nn::relu>>() ==
        nodes<plain<nn::chain<nn::linear<9, no_bias>, nn::linear<6>>, nn::relu>>());
}

TEST_CASE("what is replaced is not entered, nor what stands there instead", "[plan]") {
  using namespace replaced;
  using twice = nn::chain<block, nn::relu>;  // holds a block itself
  CHECK(nodes<read_net<is_block, twice, nn::linear<6>, block, nn::relu>>() ==
        nodes<plain<nn::linear<6>, twice, nn::relu>>());
  CHECK(nodes<read_net<is_block, nn::relu, residual, block>>() == nodes<plain<of_a_block<nn::relu>, nn::relu>>());
}

TEST_CASE("a predicate sees what a layer's type says, and a rule makes the other one of it", "[plan]") {
  using namespace replaced;
  using net = read_net<gives<6>, without_bias, nn::linear<6>, nn::relu, nn::named<struct last, nn::linear<4>>>;
  using meant = plain<nn::linear<6, no_bias>, nn::relu, nn::named<struct last, nn::linear<4>>>;
  STATIC_REQUIRE(std::is_same_v<net::output, meant::output>);
  STATIC_REQUIRE(peak_memory<net>().parameters == peak_memory<meant>().parameters);
  STATIC_REQUIRE(peak_memory<net>().parameters <
                 peak_memory<plain<nn::linear<6>, nn::relu, nn::linear<4>>>().parameters);
}

TEST_CASE("readings stand around each other and around tiles, under a name too", "[plan]") {
  using namespace replaced;
  using both =
      nn::replace<nn::replace<nn::chain<nn::linear<6>, nn::relu>, is_relu, nn::linear<3>>, is_linear, nn::linear<8>>;
  // the inner reading comes first; the outer one is asked of what that put there
  CHECK(nodes<network_type<both, rows>>() == nodes<plain<nn::linear<8>, nn::linear<8>>>());
  STATIC_REQUIRE(std::is_same_v<network_type<both, rows>::output, plain<nn::linear<8>, nn::linear<8>>::output>);
  using tiles = nn::sharded_over<nn::chain<nn::linear<6>, nn::relu>, lines>;
  using tiles_meant = nn::sharded_over<nn::chain<nn::linear<8>, nn::relu>, lines>;
  constexpr memory_value meant = peak_memory<network_type<tiles_meant, rows>>();
  STATIC_REQUIRE(peak_memory<network_type<nn::replace<tiles, is_linear, nn::linear<8>>, rows>>().parameters ==
                 meant.parameters);
  using around = nn::sharded_over<nn::replace<nn::chain<nn::linear<6>, nn::relu>, is_linear, nn::linear<8>>, lines>;
  STATIC_REQUIRE(peak_memory<network_type<around, rows>>().parameters == meant.parameters);
  CHECK(nodes<network_type<nn::replace<nn::named<struct only, nn::linear<6>>, is_linear, nn::linear<8>>, rows>>() ==
        nodes<network_type<nn::named<struct only, nn::linear<8>>, rows>>());
}
