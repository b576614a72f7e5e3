#include "tests/support/catch.hpp"

#include <tessera/functions.hpp>
#include <tessera/network.hpp>

#include <string_view>

namespace tessera::testing {

using namespace engine;

// What types know of a module: its nodes, where they stand, what they read, what they move.

namespace {

struct upper : axis<2> {};
struct lower : axis<2> {};
struct many : dyn {};
using plane = mesh<upper, lower>;
using picture =
    tensor<partition<plane, whole, whole, blocks<upper>, blocks<lower>>, shape<many, dim<4>, dim<9>, dim<8>>, double>;
using three = nn::conv<4, kernel<3, 3>, padding<1, 1>>;
using vectors = tensor<partition<plane, blocks<upper>, whole>, shape<many, dim<6>>, double>;

struct twice {
  constexpr auto operator()(auto x) const { return x | three{} | nn::relu{} | three{}; }
};
template <index_t Out>
struct head {
  constexpr auto operator()(auto x) const { return x | nn::flatten{} | nn::linear<Out>{}; }
};
struct two_heads {
  constexpr auto operator()(auto x) const {
    const auto y = x | nn::named<struct body, twice>{} | nn::max_pool<kernel<2, 2>>{};
    const auto z = y | nn::repartition<partition<plane, whole, whole, whole, whole>>{};
    return flows{z | head<3>{}, z | nn::named<struct other, nn::conv<2, kernel<1, 1>>>{}};
  }
};
using branched = network_type<two_heads, picture>;

std::string_view text_of(const text& t) { return {t.data, static_cast<std::size_t>(t.size)}; }

// A part in a loop of constant length, tied to itself.
template <int Times>
struct again {
  constexpr auto operator()(auto x) const {
    const auto y = x | nn::shared<struct step, nn::linear<6>>{};
    if constexpr (Times == 1) return y;
    else return again<Times - 1>{}(y);
  }
};

struct nested {
  constexpr auto operator()(auto x) const {
    return x | nn::chain<nn::linear<6>, nn::relu>{} | nn::named<struct last, nn::linear<6>>{};
  }
};
struct tied_nested {
  constexpr auto operator()(auto x) const {
    return x | nn::shared<struct both, nested>{} | nn::shared<struct both, nested>{} | nested{};
  }
};

// Two inputs on two meshes, two results in the other order.
struct line : axis<4> {};
using row_of_four = mesh<line>;
using others = tensor<partition<row_of_four, blocks<line>, whole>, shape<many, dim<5>>, float>;
struct crossing {
  constexpr auto operator()(auto x, auto y) const { return flows{y | nn::relu{}, x | nn::linear<2>{}}; }
};

// A layer of one's own with two operands and two results.
struct twins : nn::layer<twins> {
  static constexpr const char* name = "twins";
  static constexpr layer_plan plan(const tensor_value& x, const tensor_value& y) {
    layer_plan p;
    p.add_input(x.layout);
    p.add_input(y.layout);
    p.add_output(y.layout, y.element);
    p.add_output(x.layout, element::int64);
    if (!(x.layout == y.layout)) p.why = refusal{code::cut_unalike, text(), 1, 0};
    return p;
  }
};
struct with_twins {
  constexpr auto operator()(auto x) const {
    const auto [a, b] = twins{}(x | nn::relu{}, x);
    return flows{b, a};
  }
};

template <int N>
struct long_module {
  constexpr auto operator()(auto x) const {
    if constexpr (N == 0) return x;
    else return long_module<N - 1>{}(x | nn::conv<4 + N % 3, kernel<3, 3>, padding<1, 1>>{} | nn::relu{});
  }
};

// Verbs by name, and an operation of one's own.
constexpr auto halved = operation("nf->nf").linear();
using by_columns = partition<plane, whole, blocks<lower>>;
using on_all = partition<plane, whole, whole>;
struct moving_about {
  constexpr auto operator()(auto x) const {
    const auto all = all_gather<on_all>(x);
    const auto y = tessera::apply<halved>([](const auto& a) { return a / 2; }, tessera::shard<by_columns>(all));
    return to<partition<plane, blocks<upper>, whole>>(y) +
           (x | nn::repartition<partition<plane, blocks<upper>, whole>>{});
  }
};

}  // namespace

TEST_CASE(
    "a module is written down as nodes behind those that they read, each at its place in the keys of the serial "
    "model",
    "[plan]") {
  constexpr const auto& p = branched::program;
  STATIC_REQUIRE(p.count == 8);  // conv relu conv, pool, repartition, flatten linear, conv
  STATIC_REQUIRE((p.inputs == 1 && p.outputs == 2));
  for (int n = 0; n < p.count; ++n)
    for (int i = 0; i < p.nodes[n].operands; ++i) CHECK(p.operand(p.nodes[n], i).node < n);
  CHECK(p.operand(p.nodes[0], 0).node == -1);
  CHECK((p.operand(p.nodes[5], 0).node == 4 && p.operand(p.nodes[7], 0).node == 4));
  CHECK((p.output(0).node == 6 && p.output(1).node == 7));
  CHECK(text_of(p.scopes[p.nodes[0].scope].name) == "body");
  CHECK((p.nodes[0].number == 0 && p.nodes[1].number == 1 && p.nodes[2].number == 2));
  CHECK((p.nodes[3].scope == -1 && p.nodes[3].number == 0));  // the body has a name and no number
  CHECK(p.nodes[4].number == -1);                             // the serial model has no repartition
  CHECK((p.scopes[p.nodes[6].scope].number == 1 && p.scopes[p.nodes[6].scope].name.size == 0));
  CHECK((text_of(p.scopes[p.nodes[7].scope].name) == "other" && p.nodes[7].number == -1));
  STATIC_REQUIRE(std::is_same_v<branched::outputs,
                                detail::type_list<tensor<partition<plane, whole, whole>, shape<many, dim<3>>, double>,
                                                  tensor<partition<plane, whole, whole, whole, whole>,
                                                         shape<many, dim<2>, dim<4>, dim<4>>, double>>>);
}

TEST_CASE("what a module moves is what its layers move, as a constant and for a value", "[plan]") {
  using alone = sequential_type<picture, three, nn::relu, three, nn::max_pool<kernel<2, 2>>,
                                nn::repartition<partition<plane, whole, whole, whole, whole>>>;
  constexpr traffic_value one = traffic<alone>(bind<many>(5));
  constexpr traffic_value all = traffic<branched>(bind<many>(5));
  STATIC_REQUIRE(all == traffic<branched, bind<many>(5)>());
  STATIC_REQUIRE(all.forward == one.forward);  // the heads are on every worker alike
  STATIC_REQUIRE(one.forward.bytes > 0);
}

TEST_CASE("verbs lead flows where they lead tensors, under their names", "[plan]") {
  constexpr const auto& p = network_type<moving_about, vectors>::program;
  STATIC_REQUIRE(p.count == 6);
  const char* names[]{"all_gather", "shard", "apply", "to", "repartition", "add"};
  for (int n = 0; n < p.count; ++n) CHECK(std::string_view(p.nodes[n].record->name) == names[n]);
  STATIC_REQUIRE(std::is_same_v<network_type<moving_about, vectors>::output, canonical_tensor<vectors>>);
  using gathered = tensor<on_all, shape<many, dim<6>>, double>;
  using columns = tensor<by_columns, shape<many, dim<6>>, double>;
  constexpr traffic_value t = traffic<network_type<moving_about, vectors>, bind<many>(5)>();
  STATIC_REQUIRE(t.forward.bytes == primitive<vectors, gathered>::bytes(bind<many>(5)) +
                                        primitive<columns, vectors>::bytes(bind<many>(5)));
}

TEST_CASE("a part that is shared stands in one scope however often it is used", "[plan]") {
  using net = network_type<again<5>, vectors>;
  constexpr const auto& p = net::program;
  STATIC_REQUIRE(p.count == 5);
  for (const auto& node : p) CHECK((node.scope == p.nodes[0].scope && node.number == -1));
  CHECK(p.scopes[p.nodes[0].scope].shared);
}

TEST_CASE("what stands in a part that is shared is shared with it", "[plan]") {
  constexpr const auto& p = network_type<tied_nested, vectors>::program;
  STATIC_REQUIRE(p.count == 9);
  for (int n = 0; n < 3; ++n) {
    CHECK((p.nodes[n].scope == p.nodes[n + 3].scope && p.nodes[n].number == p.nodes[n + 3].number));
    CHECK(p.nodes[n].scope != p.nodes[n + 6].scope);
    CHECK(p.scopes[p.nodes[n].scope].shared);
    CHECK(!p.scopes[p.nodes[n + 6].scope].shared);
  }
}

TEST_CASE("inputs lie on several meshes, and results are given in any order", "[plan]") {
  using net = network_type<crossing, vectors, others>;
  STATIC_REQUIRE((net::program.inputs == 2 && net::program.outputs == 2));
  STATIC_REQUIRE(net::program.output(0).node == 0);
  STATIC_REQUIRE(
      std::is_same_v<net::outputs,
                     detail::type_list<canonical_tensor<others>,
                                       tensor<partition<plane, blocks<upper>, whole>, shape<many, dim<2>>, double>>>);
}

TEST_CASE("a layer of one's own takes several flows and gives several", "[plan]") {
  using net = network_type<with_twins, vectors>;
  STATIC_REQUIRE(net::program.nodes[1].results == 2);
  STATIC_REQUIRE((net::program.output(0).index == 1 && net::program.output(1).index == 0));
  STATIC_REQUIRE(std::is_same_v<
                 net::outputs,
                 detail::type_list<tensor<partition<plane, blocks<upper>, whole>, shape<many, dim<6>>, std::int64_t>,
                                   canonical_tensor<vectors>>>);
}

TEST_CASE("a layer alone is a module, and so is what a module gives back unchanged", "[plan]") {
  STATIC_REQUIRE(network_type<nn::relu, vectors>::program.count == 1);
  STATIC_REQUIRE(network_type<long_module<0>, vectors>::program.count == 0);
  STATIC_REQUIRE(network_type<long_module<0>, vectors>::program.output(0).node == -1);
}

TEST_CASE("a module of 300 layers is within the compilers' limits, its budget too", "[plan]") {
  using net = network_type<long_module<150>, picture>;
  STATIC_REQUIRE(net::program.count == 300);
  constexpr traffic_value t = traffic<net, bind<many>(3)>();
  STATIC_REQUIRE(t.forward.messages >= 150);
}

}  // namespace tessera::testing
