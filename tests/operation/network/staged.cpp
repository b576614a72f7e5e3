// Stages that a chain is given, beside the same chain with `to` written out: the same nodes, keys and layouts.

#include "tests/support/catch.hpp"

#include <tessera/functions.hpp>
#include <tessera/network.hpp>
#include <tessera/operation/network/staged.hpp>

#include <algorithm>
#include <string>
#include <vector>

namespace staged_networks {

using namespace tessera;
using namespace tessera::engine;

template <int P>
struct data : axis<P> {};
template <int P>
struct stage : axis<P> {};
struct rows : dyn {};

/// Two workers of a stage share rows.
template <int D, int S>
struct over {
  using grid = mesh<data<D>, stage<S>>;
  template <int At>
  using place = partition<grid, blocks<data<D>>, whole, on<stage<S>, At>>;
  using input = tensor<place<0>, shape<rows, dim<5>>, double>;
  template <int At>
  using to = functions::change_to<verb::several, place<At>>;
};

/// What a program is: each node with its place in the keys and what it reads; and how its tensors lie.
template <class View>
std::string told(const View& p, std::vector<layout>& lie) {
  std::string all;
  for (const auto& n : p) {
    const layer_plan plan = n.record->plan();
    all += std::string(n.record->name) + " " + std::to_string(n.scope) + " " + std::to_string(n.number) + ":";
    for (int i = 0; i < n.operands; ++i)
      all += " " + std::to_string(p.operand(n, i).node) + "." + std::to_string(p.operand(n, i).index);
    all += "\n";
    for (int i = 0; i < plan.outputs(); ++i) lie.push_back(plan.output(i));
    for (int i = 0; i < plan.parameters(); ++i) lie.push_back(plan.stored(i)), lie.push_back(plan.weight(i));
  }
  for (const auto* s = p.scopes; s != p.scopes + (p.count > 0 ? p.nodes[p.count - 1].scope + 1 : 0); ++s)
    all += std::to_string(s->parent) + "." + std::to_string(s->number) + "\n";
  return all;
}

template <class A, class B, class In>
void same_programs() {
  std::vector<layout> of_a, of_b;
  CHECK(told(network_type<A, In>::program, of_a) == told(network_type<B, In>::program, of_b));
  CHECK((of_a == of_b));
}

template <index_t N>
using layer = nn::linear<N>;
struct residual {
  constexpr auto operator()(auto x) const { return x + (x | layer<8>{} | nn::relu{}); }
};

TEST_CASE("stages by count, sizes, weights or parameters are where a user would write to", "[plan]") {
  using two = over<2, 2>;
  using three = over<2, 3>;
  using nn::chain;
  using nn::relu;
  using six = chain<layer<8>, relu, layer<8>, relu, layer<8>, relu>;
  same_programs<nn::staged<six, stage<2>>, chain<layer<8>, relu, layer<8>, two::to<1>, relu, layer<8>, relu>,
                two::input>();
  same_programs<nn::staged<six, stage<3>, nn::by_count>,
                chain<layer<8>, relu, three::to<1>, layer<8>, relu, three::to<2>, layer<8>, relu>, three::input>();
  same_programs<nn::staged<six, stage<2>, nn::by_sizes<1, 5>>,
                chain<layer<8>, two::to<1>, relu, layer<8>, relu, layer<8>, relu>, two::input>();
  same_programs<nn::staged<six, stage<2>, nn::by_weights<1, 1, 1, 1, 1, 9>>,
                chain<layer<8>, relu, layer<8>, relu, layer<8>, two::to<1>, relu>, two::input>();
  // 5 · 64 + 64, 64 · 8 + 8, 72, 72 parameters
  same_programs<nn::staged<chain<layer<64>, layer<8>, layer<8>, layer<8>>, stage<2>, nn::by_parameters>,
                chain<layer<64>, two::to<1>, layer<8>, layer<8>, layer<8>>, two::input>();
  // a micro-batch keeps 100 · 64 numbers of the first and 100 · 8 of the others, of which the first stage has two
  same_programs<nn::staged<chain<layer<8>, layer<8>, layer<8>, layer<64>>, stage<2>, nn::by_memory<100>>,
                chain<layer<8>, layer<8>, layer<8>, two::to<1>, layer<64>>, two::input>();
  // 5 · 64 + 64 · 4 multiply-adds a row, 4 · 96, 96 · 2: forward, and twice as many backward
  same_programs<nn::staged<chain<layer<64>, layer<4>, layer<96>, layer<2>>, stage<2>, nn::by_time<100>>,
                chain<layer<64>, layer<4>, two::to<1>, layer<96>, layer<2>>, two::input>();
  // parts of a chain in a chain, and modules whole
  same_programs<nn::staged<chain<layer<8>, chain<residual, residual>, layer<4>>, stage<2>>,
                chain<layer<8>, chain<residual, two::to<1>, residual>, layer<4>>, two::input>();
  same_programs<nn::staged<chain<layer<8>, nn::recompute<residual>, layer<4>>, stage<3>>,
                chain<layer<8>, three::to<1>, nn::recompute<residual>, three::to<2>, layer<4>>, three::input>();
}

/// The most multiply-adds of a stage, where parts [0, first) and [first, second) are on the first two of three.
constexpr index_t most_of(const index_t (&each)[5], int first, int second) {
  index_t sums[3]{};
  for (int i = 0; i < 5; ++i) sums[i < first ? 0 : i < second ? 1 : 2] += each[i];
  return std::max({sums[0], sums[1], sums[2]});
}

struct twice_again {
  constexpr auto operator()(auto x) const { return x | layer<40>{} | layer<8>{}; }
};

TEST_CASE("stages by time are those whose most arithmetic is least of all cuts", "[law]") {
  using three = over<2, 3>;
  const auto is_least = []<class A, class B, class C, class D, class E>(std::type_identity<nn::chain<A, B, C, D, E>>,
                                                                        index_t n) {
    using chain = nn::chain<A, B, C, D, E>;
    using in = three::input;
    index_t each[5], before = 0;
    int next = 0;
    const auto add = [&](const arithmetic_value& so_far) {
      each[next++] = so_far.of_a_worker() - before;
      before = so_far.of_a_worker();
    };
    add(multiply_adds<network_type<nn::chain<A>, in>>(bind<rows>(n)));
    add(multiply_adds<network_type<nn::chain<A, B>, in>>(bind<rows>(n)));
    add(multiply_adds<network_type<nn::chain<A, B, C>, in>>(bind<rows>(n)));
    add(multiply_adds<network_type<nn::chain<A, B, C, D>, in>>(bind<rows>(n)));
    add(multiply_adds<network_type<chain, in>>(bind<rows>(n)));
    index_t least = INT64_MAX;
    for (int first = 1; first < 4; ++first)
      for (int second = first + 1; second < 5; ++second) least = std::min(least, most_of(each, first, second));
    // where it was cut: the moves to the next stage
    const auto& program = network_type<nn::staged<chain, stage<3>, nn::by_time<60>>, in>::program;
    int cuts[2]{}, found = 0, part = 0;
    for (const auto& node : program) {
      if (std::string(node.record->name) == "to") cuts[found++] = part;
      else part = node.number + 1;
    }
    CAPTURE(cuts[0], cuts[1], least);
    CHECK(found == 2);
    CHECK(most_of(each, cuts[0], cuts[1]) == least);
  };
  using nn::chain;
  is_least(std::type_identity<chain<layer<50>, layer<3>, layer<80>, layer<2>, layer<30>>>{}, 60);
  is_least(std::type_identity<chain<layer<3>, layer<90>, layer<5>, layer<60>, layer<60>>>{}, 60);
  is_least(std::type_identity<chain<layer<100>, nn::relu, layer<7>, nn::relu, layer<9>>>{}, 60);
}

TEST_CASE("what is recomputed takes its forward once more", "[plan]") {
  using two = over<2, 2>;
  using nn::chain;
  // 5 · 40 + 40 · 8 = 520 multiply-adds a row, 8 · 10 and 10 · 60, three times; those that are recomputed four times
  using again = nn::recompute<twice_again>;
  same_programs<nn::staged<chain<twice_again, layer<10>, layer<60>>, stage<2>, nn::by_time<100>>,
                chain<twice_again, layer<10>, two::to<1>, layer<60>>, two::input>();
  same_programs<nn::staged<chain<again, layer<10>, layer<60>>, stage<2>, nn::by_time<100>>,
                chain<again, two::to<1>, layer<10>, layer<60>>, two::input>();
}

TEST_CASE("chains in chains are shared out part by part, under names and shared too", "[plan]") {
  using three = over<2, 3>;
  using nn::chain;
  using inner = chain<layer<8>, nn::relu>;
  same_programs<nn::staged<chain<chain<inner, chain<layer<8>>>, inner, layer<4>>, stage<3>>,
                chain<chain<inner, chain<three::to<1>, layer<8>>>, chain<layer<8>, three::to<2>, nn::relu>, layer<4>>,
                three::input>();
  same_programs<
      nn::staged<chain<nn::named<struct encoder, chain<layer<8>, inner>>, layer<4>>, stage<3>, nn::by_sizes<1, 2, 1>>,
      chain<nn::named<struct encoder, chain<layer<8>, chain<three::to<1>, layer<8>, nn::relu>>>, three::to<2>,
            layer<4>>,
      three::input>();
  same_programs<nn::staged<nn::named<struct encoder, chain<layer<8>, inner>>, stage<3>>,
                nn::named<struct encoder, chain<layer<8>, chain<three::to<1>, layer<8>, three::to<2>, nn::relu>>>,
                three::input>();
  // the same layers on two stages, whose weights are one
  using twice = nn::shared<struct block, chain<layer<5>, nn::relu>>;
  same_programs<nn::staged<chain<twice, layer<5>, twice>, stage<3>, nn::by_sizes<2, 1, 2>>,
                chain<twice, three::to<1>, layer<5>, nn::shared<struct block, chain<three::to<2>, layer<5>, nn::relu>>>,
                three::input>();
}

/// A residual as parts of a chain: what goes past the layer goes on beside it.
struct aside {
  constexpr auto operator()(auto x) const { return flows{x, x}; }
};
struct first_layer {
  constexpr auto operator()(auto x, auto past) const { return flows{x | layer<8>{}, past}; }
};
struct second_layer {
  constexpr auto operator()(auto x, auto past) const { return flows{x | nn::relu{} | layer<5>{}, past}; }
};
struct sum_of_both {
  constexpr auto operator()(auto x, auto past) const { return x + past; }
};

TEST_CASE("a residual is one part, and several where it is written as a chain", "[plan]") {
  using three = over<2, 3>;
  using ways = network_type<
      nn::staged<nn::chain<aside, first_layer, second_layer, sum_of_both>, stage<3>, nn::by_sizes<2, 1, 1>>,
      three::input>;
  int moves = 0;
  for (const auto& n : ways::program) moves += n.record->moves_only;
  CHECK(moves == 4);  // both tensors over both boundaries
  CHECK(tessera::detail::units_of<nn::chain<residual, layer<4>>> == 2);
}

TEST_CASE("chunks pass the stages again, and a network turns back through a move that moves nothing", "[plan]") {
  using two = over<2, 2>;
  using nn::chain;
  using four = chain<layer<8>, layer<8>, layer<8>, layer<8>>;
  same_programs<nn::staged<four, stage<2>, nn::chunks<2>>,
                chain<layer<8>, two::to<1>, layer<8>, two::to<0>, layer<8>, two::to<1>, layer<8>>, two::input>();
  same_programs<nn::staged<four, stage<2>, nn::chunks<2>, nn::turning>,
                chain<layer<8>, two::to<1>, layer<8>, two::to<1>, layer<8>, two::to<0>, layer<8>>, two::input>();
}

struct model : axis<2> {};
using beside = mesh<model, stage<2>>;
template <int At>
using copies = partition<beside, whole, whole, on<stage<2>, At>>;
template <int At>
using shares = partition<beside, whole, blocks<model>, on<stage<2>, At>>;
template <class Q>
using move = functions::change_to<verb::several, Q>;

TEST_CASE("what all workers of an axis have goes to the next stage in shares", "[plan]") {
  using input = tensor<copies<0>, shape<rows, dim<5>>, double>;
  using staged = nn::staged<nn::chain<layer<8>, layer<6>>, stage<2>, nn::through_shards<model>>;
  using direct = nn::staged<nn::chain<layer<8>, layer<6>>, stage<2>>;
  same_programs<staged, nn::chain<layer<8>, move<shares<0>>, move<shares<1>>, move<copies<1>>, layer<6>>, input>();
  same_programs<direct, nn::chain<layer<8>, move<copies<1>>, layer<6>>, input>();
  // of 12 rows of 8 numbers each worker gets a half of another stage and a half of its own; else all of another
  const auto over = [](const auto& program, int node) {
    const layer_plan p = program.nodes[node].record->plan();
    layout from = p.given(), to = p.output();
    from.dims[0].extent = to.dims[0].extent = 12;
    return traffic_of(from, to, element::float64);
  };
  const auto& ways = network_type<staged, input>::program;
  CHECK(over(ways, 1).forward.bytes == 0);
  CHECK(over(ways, 2).forward.bytes == 12 * 8 * 8);
  CHECK(over(ways, 3).forward.bytes == 12 * 8 * 8);
  CHECK(over(network_type<direct, input>::program, 1).forward.bytes == 2 * 12 * 8 * 8);
}

TEST_CASE("what cannot be shared out to stages is refused by one verdict", "[refusal]") {
  using input = over<2, 2>::input;
  using two = nn::chain<layer<8>, layer<8>>;
  struct elsewhere : axis<2> {};
  const auto is = []<class Module, class Verdict>(std::type_identity<Module>, Verdict) {
    return std::is_same_v<network_type<Module, input>, refused_network<Verdict, input>>;
  };
  const auto of = []<class... How>(std::type_identity<How>...) {
    return std::type_identity<nn::staged<two, stage<2>, How...>>{};
  };
  using none_left = verdicts::more_stages_than_layers<with::layers<2>, with::stages<4>>;
  CHECK(is(of(std::type_identity<nn::chunks<2>>{}), none_left{}));
  using one = verdicts::more_stages_than_layers<with::layers<1>, with::stages<2>>;  // what is no chain is one part
  CHECK(is(std::type_identity<nn::staged<residual, stage<2>>>{}, one{}));
  using sizes =
      verdicts::stages_given_otherwise<with::sizes_given<2>, with::parts<2>, with::layers_in_them<3>, with::layers<2>>;
  CHECK(is(of(std::type_identity<nn::by_sizes<1, 2>>{}), sizes{}));
  using weights =
      verdicts::stages_given_otherwise<with::sizes_given<1>, with::parts<2>, with::layers_in_them<1>, with::layers<2>>;
  CHECK(is(of(std::type_identity<nn::by_weights<1>>{}), weights{}));
  using other = verdicts::axis_not_in_mesh<elsewhere, with::mesh_axes<2>>;
  CHECK(is(std::type_identity<nn::staged<two, elsewhere>>{}, other{}));
  using through = at_layer<1, layer<8>, verdicts::axis_not_in_mesh<with::none, with::mesh_axes<2>>>;
  CHECK(is(of(std::type_identity<nn::through_shards<elsewhere>>{}), through{}));
  CHECK(is(std::type_identity<nn::staged<two, int>>{}, wrong_argument<kind::module, 1, kind::axis, kind::element>{}));
}

struct split {
  constexpr auto operator()(auto x) const { return flows{x | layer<8>{}, x}; }
};
struct both {
  constexpr auto operator()(auto x, auto y) const { return flows{x | layer<8>{}, y}; }
};
struct joined {
  constexpr auto operator()(auto x, auto y) const { return layer<5>{}(x) + y; }
};
/// The same with the moves in it.
struct written_out {
  constexpr auto operator()(auto x) const {
    const auto a = x | split{};
    const auto b = both_of(ts_to<1>(get<0>(a)), ts_to<1>(get<1>(a)));
    return last_of(ts_to<2>(get<0>(b)), ts_to<2>(get<1>(b)));
  }
  template <int At>
  static constexpr auto ts_to(auto x) {
    return to<over<2, 3>::place<At>>(x);
  }
  static constexpr auto both_of(auto x, auto y) { return tessera::detail::passed_on<both>(x, y); }
  static constexpr auto last_of(auto x, auto y) { return tessera::detail::passed_on<joined>(x, y); }
};

TEST_CASE("several tensors go from part to part", "[plan]") {
  same_programs<nn::staged<nn::chain<split, both, joined>, stage<3>>, written_out, over<2, 3>::input>();
}

}  // namespace staged_networks
