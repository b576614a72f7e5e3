#include "tests/support/catch.hpp"

#include <tessera/functions.hpp>
#include <tessera/network.hpp>

#include <string_view>

// What types know of a module: its nodes, where they stand, what they read, what they move.

namespace tessera::testing {

using namespace engine;

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

// Functions that exchange inside, of a dimension that is cut in three.
struct thirds : axis<3> {};
using cut_rows = tensor<partition<mesh<upper, thirds>, blocks<upper>, blocks<thirds>>, shape<many, dim<6>>, float>;
struct normalised {
  constexpr auto operator()(auto x) const { return softmax<1>(x); }
};
struct spread {
  constexpr auto operator()(auto x) const { return var<1>(x); }
};
struct best {
  constexpr auto operator()(auto x) const { return argmax<1>(x); }
};
struct largest {
  constexpr auto operator()(auto x) const { return norm<1>(x, std::numeric_limits<double>::infinity()); }
};
struct all_of_them {
  constexpr auto operator()(auto x) const {
    const auto p = softmax<1>(x);
    return flows{var<1>(p), argmax<1>(p), norm<1>(p, std::numeric_limits<double>::infinity())};
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

// One behind the other along a dimension that is cut.
struct joining {
  constexpr auto operator()(auto x) const { return concat<1>(x, x * 2); }
};
struct joining_rows {
  constexpr auto operator()(auto x) const { return concat<0, partition<plane, blocks<upper>, blocks<lower>>>(x, x, x); }
};

}  // namespace

TEST_CASE(
    "a module is written down as nodes behind those that they read, each at its place in the keys of the serial "
    "model") {
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

TEST_CASE("what a module moves is what its layers move, as a constant and for a value") {
  using alone = sequential_type<picture, three, nn::relu, three, nn::max_pool<kernel<2, 2>>,
                                nn::repartition<partition<plane, whole, whole, whole, whole>>>;
  constexpr traffic_value one = traffic<alone>(bind<many>(5));
  constexpr traffic_value all = traffic<branched>(bind<many>(5));
  STATIC_REQUIRE(all == traffic<branched, bind<many>(5)>());
  STATIC_REQUIRE(all.forward == one.forward);  // the heads are on every worker alike
  STATIC_REQUIRE(one.forward.bytes > 0);
}

TEST_CASE("functions that exchange inside are counted: sums both ways, extremes there alone") {
  // An all_reduce of m elements over 3 workers: each reads 2 terms of its share and 2 shares of the others, so 4 m in
  // all.
  constexpr index_t n = 10;
  constexpr index_t in_float = 4 * n * 4;
  constexpr index_t in_double = 4 * n * 8;
  const auto moved = [](const traffic_value& t) { return std::pair(t.forward.bytes, t.backward.bytes); };
  CHECK(moved(traffic<network_type<normalised, cut_rows>>(bind<many>(n))) == std::pair(2 * in_float, in_float));
  CHECK(moved(traffic<network_type<spread, cut_rows>>(bind<many>(n))) == std::pair(2 * in_double, 2 * in_double));
  CHECK(moved(traffic<network_type<best, cut_rows>>(bind<many>(n))) == std::pair(in_float + in_double, index_t{0}));
  // and how many share the gradient
  CHECK(moved(traffic<network_type<largest, cut_rows>>(bind<many>(n))) == std::pair(2 * in_double, in_double));
  constexpr traffic_value all = traffic<network_type<all_of_them, cut_rows>, bind<many>(n)>();
  STATIC_REQUIRE(all == traffic<network_type<all_of_them, cut_rows>>(bind<many>(n)));
  CHECK(moved(all) == std::pair(3 * in_float + 5 * in_double, in_float + 3 * in_double));
  using alone = tensor<partition<mesh<upper, thirds>, blocks<upper>, whole>, shape<many, dim<6>>, float>;
  CHECK(traffic<network_type<all_of_them, alone>>(bind<many>(n)) == traffic_value{});
}

TEST_CASE("verbs lead flows where they lead tensors, under their names") {
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

TEST_CASE("tensors that are put end to end along a cut dimension go to their ranges of a balanced one") {
  using columns = tensor<partition<plane, blocks<upper>, blocks<lower>>, shape<dim<10>, dim<6>>, double>;
  using net = network_type<joining, columns>;
  STATIC_REQUIRE(
      std::is_same_v<net::output,
                     tensor<partition<plane, blocks<upper>, blocks<lower>>, shape<dim<10>, dim<12>>, double>>);
  constexpr traffic_value t = traffic<net>();
  // 3 columns of the first go to the left, 3 of the second to the right
  STATIC_REQUIRE(t.forward.bytes == 10 * (3 + 3) * 8);
  STATIC_REQUIRE(t.backward.bytes == t.forward.bytes);
  using rows = tensor<partition<plane, whole, blocks<lower>, on<upper>>, shape<dim<4>, dim<6>>, double>;
  STATIC_REQUIRE(
      std::is_same_v<network_type<joining_rows, rows>::output,
                     tensor<partition<plane, blocks<upper>, blocks<lower>>, shape<dim<12>, dim<6>>, double>>);
  // half of the twelve rows leave coordinate 0
  STATIC_REQUIRE(traffic<network_type<joining_rows, rows>>().forward.bytes == 6 * 6 * 8);
}

TEST_CASE("a part that is shared stands in one scope however often it is used") {
  using net = network_type<again<5>, vectors>;
  constexpr const auto& p = net::program;
  STATIC_REQUIRE(p.count == 5);
  for (const auto& node : p) CHECK((node.scope == p.nodes[0].scope && node.number == -1));
  CHECK(p.scopes[p.nodes[0].scope].shared);
}

TEST_CASE("what stands in a part that is shared is shared with it") {
  constexpr const auto& p = network_type<tied_nested, vectors>::program;
  STATIC_REQUIRE(p.count == 9);
  for (int n = 0; n < 3; ++n) {
    CHECK((p.nodes[n].scope == p.nodes[n + 3].scope && p.nodes[n].number == p.nodes[n + 3].number));
    CHECK(p.nodes[n].scope != p.nodes[n + 6].scope);
    CHECK(p.scopes[p.nodes[n].scope].shared);
    CHECK(!p.scopes[p.nodes[n + 6].scope].shared);
  }
}

TEST_CASE("inputs lie on several meshes, and results are given in any order") {
  using net = network_type<crossing, vectors, others>;
  STATIC_REQUIRE((net::program.inputs == 2 && net::program.outputs == 2));
  STATIC_REQUIRE(net::program.output(0).node == 0);
  STATIC_REQUIRE(
      std::is_same_v<net::outputs,
                     detail::type_list<canonical_tensor<others>,
                                       tensor<partition<plane, blocks<upper>, whole>, shape<many, dim<2>>, double>>>);
}

TEST_CASE("a layer of one's own takes several flows and gives several") {
  using net = network_type<with_twins, vectors>;
  STATIC_REQUIRE(net::program.nodes[1].results == 2);
  STATIC_REQUIRE((net::program.output(0).index == 1 && net::program.output(1).index == 0));
  STATIC_REQUIRE(std::is_same_v<
                 net::outputs,
                 detail::type_list<tensor<partition<plane, blocks<upper>, whole>, shape<many, dim<6>>, std::int64_t>,
                                   canonical_tensor<vectors>>>);
}

TEST_CASE("a layer alone is a module, and so is what a module gives back unchanged") {
  STATIC_REQUIRE(network_type<nn::relu, vectors>::program.count == 1);
  STATIC_REQUIRE(network_type<long_module<0>, vectors>::program.count == 0);
  STATIC_REQUIRE(network_type<long_module<0>, vectors>::program.output(0).node == -1);
}

TEST_CASE("a module of 300 layers is within the compilers' limits, its budget too") {
  using net = network_type<long_module<150>, picture>;
  STATIC_REQUIRE(net::program.count == 300);
  constexpr traffic_value t = traffic<net, bind<many>(3)>();
  STATIC_REQUIRE(t.forward.messages >= 150);
}

}  // namespace tessera::testing
