#include "tests/support/catch.hpp"

#include <tessera/functions.hpp>
#include <tessera/network.hpp>

#include <limits>

namespace tessera::testing {

using namespace engine;

namespace {

struct upper : axis<2> {};
struct lower : axis<2> {};
struct many : dyn {};
constexpr text many_is = short_name_of<many>();
using plane = mesh<upper, lower>;

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

// One behind the other along a dimension that is cut.
struct joining {
  constexpr auto operator()(auto x) const { return concat<1>(x, x * 2); }
};
struct joining_rows {
  constexpr auto operator()(auto x) const { return concat<0, partition<plane, blocks<upper>, blocks<lower>>>(x, x, x); }
};

}  // namespace

TEST_CASE("functions that exchange inside are counted: sums both ways, extremes there alone", "[plan]") {
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

TEST_CASE("tensors that are put end to end along a cut dimension go to their ranges of a balanced one", "[plan]") {
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

TEST_CASE("a range up to the far end is that of a dimension whose extent comes later", "[plan][refusal]") {
  using rows = tensor<partition<plane, whole, blocks<lower>>, shape<many, dim<6>>, double>;
  using range = functions::slice<0, 2, -1>;
  constexpr functions::engine::function_value open = range{}.on(value_of<rows>);
  STATIC_REQUIRE(open.why.ok());
  STATIC_REQUIRE(open.result.layout.dims[0].extent == dynamic);
  using kept = result_type<range, rows>;
  STATIC_REQUIRE(tessera::detail::cut_alike(value_of<kept>.layout, value_of<rows>.layout));
  for (index_t n = 0; n < 8; ++n) {
    const functions::engine::function_value y =
        range{}.on({bound(value_of<rows>.layout, many_is, n), element::float64});
    CHECK(y.why.ok() == (n >= 3));
    if (y.why.ok()) CHECK(y.result.layout.dims[0].extent == n - 3);
  }
  using parts = tensor<partition<plane, blocks<lower>, whole>, shape<many, dim<6>>, double>;
  STATIC_REQUIRE(range{}.on(value_of<parts>).why.because->code == std::string_view("tessera.rule.window"));
}

TEST_CASE("the largest of no elements is refused, and so is where it stands", "[refusal]") {
  constexpr auto code = [](const functions::engine::function_value& y) {
    return y.why.ok() ? std::string_view() : y.why.because->code;
  };
  const auto judge = [&](const auto& f, bool of_columns, bool of_rows) {
    for (const index_t n : {0, 3})
      for (const index_t m : {0, 6}) {
        tensor_value x = value_of<cut_rows>;
        x.layout.dims[0].extent = n;
        x.layout.dims[1].extent = m;
        const bool some = (!of_rows || n > 0) && (!of_columns || m > 0);
        CHECK(code(f.on(x)) == (some ? "" : "tessera.function.empty"));
      }
  };
  constexpr double infinity = std::numeric_limits<double>::infinity();
  judge(functions::argument<1, true>{}, true, false);
  judge(functions::argument<1, false>{}, true, false);
  judge(functions::norm<combine::max, 1>{{}, infinity}, true, false);
  judge(functions::norm<combine::max>{{}, infinity}, true, true);
  judge(functions::norm<combine::sum, 1>{}, false, false);
}

}  // namespace tessera::testing
