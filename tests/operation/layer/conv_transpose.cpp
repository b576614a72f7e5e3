#include "tests/support/catch.hpp"
#include "tests/support/generate.hpp"
#include "tests/support/images.hpp"
#include "tests/support/oracle.hpp"

#include <tessera/network.hpp>

namespace tessera::testing {

using namespace engine;

namespace {

// The extent of a transposed convolution, dimension by dimension.
template <class... Options>
constexpr index_t grown(int d) {
  return value_of<after<nn::conv_transpose<4, Options...>>>.layout.dims[d].extent;
}
// How many elements workers hold under one layout that they lack under another.
index_t lacking(const layout& held, const layout& known) {
  index_t n = 0;
  for (int r = 0; r < 64; ++r) {
    const auto has = oracle::in_memory(known, r);
    const std::set<oracle::element> all(has.begin(), has.end());
    for (const oracle::element& e : oracle::in_memory(held, r)) n += all.count(e) == 0 ? 1 : 0;
  }
  return n;
}
template <class... Layers>
constexpr layer_plan plan_of_one() {
  return sequential_type<image, Layers...>::program.nodes[0].record->plan();
}

}  // namespace

TEST_CASE("a transposed convolution gives (n - 1) s - 2 p + d (k - 1) + output padding + 1, cut as what it takes",
          "[plan][refusal]") {
  using two = nn::conv_transpose<4, kernel<3, 2>, stride<2>, padding<1, 0>, output_padding<1, 0>>;
  STATIC_REQUIRE(std::is_same_v<after<two>, tensor<partition<grid, whole, whole, blocks<row>, blocks<col>>,
                                                   shape<batch, dim<4>, dim<18>, dim<16>>, double>>);
  STATIC_REQUIRE(grown<kernel<3, 3>>(2) == 11);
  STATIC_REQUIRE(grown<kernel<3, 3>, stride<3, 1>>(2) == 8 * 3 + 2 + 1);
  STATIC_REQUIRE(grown<kernel<3, 3>, stride<3, 1>>(3) == 7 + 2 + 1);
  STATIC_REQUIRE(grown<kernel<3, 3>, dilation<4>, output_padding<3>>(3) == 7 + 8 + 3 + 1);
  STATIC_REQUIRE(grown<kernel<1, 1>, stride<5>, output_padding<4>>(2) == 8 * 5 + 4 + 1);
  STATIC_REQUIRE(grown<kernel<3, 3>, padding_at<1, 0, 2, 1>>(3) == 7 - 2 - 1 + 2 + 1);
  STATIC_REQUIRE(grown<kernel<3, 3>, stride<2>, output_size<20, 17>>(2) == 20);
  // In the weight [in, out / groups, kernel…] inputs come first; the bound of its initial values is LibTorch's.
  constexpr layer_plan grouped = nn::conv_transpose<6, kernel<3, 2>, groups<3>>::plan(value_of<image>);
  CHECK((grouped.weight(0).dims[0].extent == 3 && grouped.weight(0).dims[1].extent == 2 &&
         grouped.weight(0).dims[3].extent == 2));
  CHECK(grouped.parameter(0).initial == init::usual(2 * 3 * 2));
  const auto why = [](auto layer) { return layer.plan(value_of<image>).why; };
  CHECK(why(nn::conv_transpose<4, kernel<3, 3>, stride<2>, output_padding<2>>{}).is(code::output_padding_too_large));
  CHECK(why(nn::conv_transpose<4, kernel<3, 3>, stride<2>, output_padding<-1>>{}).is(code::output_padding_too_large));
  CHECK(why(nn::conv_transpose<4, kernel<3, 3>, stride<2>, output_size<18>>{}).is(code::output_padding_too_large));
  CHECK(why(nn::conv_transpose<4, kernel<3, 3>, output_size<0>>{}).is(code::padding_leaves_nothing));
  CHECK(why(nn::conv_transpose<4, kernel<1, 1>, padding<5>>{}).is(code::padding_leaves_nothing));
  CHECK(why(nn::conv_transpose<4, kernel<3, 3>, padding<-1>>{}).is(code::window_not_positive));
  CHECK(why(nn::conv_transpose<4, kernel<3, 3>, groups<2>>{}).is(code::groups_do_not_divide));
  CHECK(why(nn::conv<4, kernel<3, 3>, stride<1, 2>, padding_same>{}).is(code::same_padding_steps));
}

TEST_CASE("a transposed convolution moves the input's halo or the result's terms, whichever is less", "[plan]") {
  constexpr auto forward = [](auto net) {
    const traffic_value t = traffic<decltype(net)>(bind<batch>(5));
    return t.forward.bytes == t.forward.lower_bound_bytes && t.backward.lower_bound_bytes == t.backward.bytes
               ? t.forward.bytes
               : -1;
  };
  // 9 rows are 5 and 4, 18 are 9 and 9: the second worker reads the fifth row of 3 features, or adds the tenth, of as
  // many as it gives.
  using wide = nn::conv_transpose<9, kernel<2, 1>, stride<2, 1>>;
  using narrow = nn::conv_transpose<1, kernel<2, 1>, stride<2, 1>>;
  STATIC_REQUIRE(forward(sequential_type<image, wide>{}) == 5 * 3 * 8 * 8);
  STATIC_REQUIRE(forward(sequential_type<image, narrow>{}) == 5 * 1 * 8 * 8);
  CHECK(plan_of_one<wide>().used().dims[2].kind == cover::haloed);
  CHECK(plan_of_one<narrow>().raw().dims[2].kind == cover::pending);
  // A kernel as long as its stride over parts that come out even moves nothing.
  STATIC_REQUIRE(forward(sequential_type<image, nn::conv_transpose<1, kernel<1, 2>, stride<1, 2>>>{}) == 0);
  STATIC_REQUIRE(forward(sequential_type<image, nn::conv_transpose<9, kernel<1, 2>, stride<1, 2>>>{}) == 0);
  // Backward is the adjoint: as much goes back, and the parameters' gradients are summed.
  constexpr traffic_value t = traffic<sequential_type<image, narrow>>(bind<batch>(5));
  STATIC_REQUIRE(t.backward.bytes == t.forward.bytes + 2 * 3 * (3 * 1 * 2 + 1) * 8);
  // No other way to share moves less, rows and columns apart.
  constexpr auto best = [](auto layer) {
    const layout x = detail::of_one_sample(value_of<image>.layout, 1);
    const contraction what = layer.description();
    const detail::contraction_planner form(x, what);
    index_t least = INT64_MAX;
    for (unsigned spread = 0; spread < 4; ++spread)
      least = std::min(least, detail::moved(form.plan({{}, {}, spread}), element::float32));
    return least == detail::moved(form.plan(detail::cheapest(form, what, element::float32, {})), element::float32);
  };
  STATIC_REQUIRE(best(nn::conv_transpose<2, kernel<5, 5>, padding<2>>{}));
  STATIC_REQUIRE(best(nn::conv_transpose<3, kernel<4, 3>, stride<2, 3>>{}));
  STATIC_REQUIRE(best(nn::conv_transpose<8, kernel<3, 2>, stride<2, 4>, dilation<2>>{}));
}

TEST_CASE("what a transposed convolution moves is what workers lack, element by element, and as much comes back",
          "[law]") {
  dice d{7};
  int moving[2]{};
  for (int round = 0; round < 400; ++round) {
    static_vector<index_t, max_dimensions> e;
    for (const int most : {2, 3, 9}) e.push(d.roll(1, most));
    const layout x = roll_layout(d, roll_mesh(d, 3), e, {});
    contraction c;
    c.feature = 1;
    c.out = d.roll(1, 3);
    c.transposed = true;
    c.kernels.push({d.roll(1, 5), d.roll(1, 4), d.roll(0, 2), d.roll(0, 2), d.roll(1, 3)});
    c.output_padding.push(d.roll(0, static_cast<int>(std::max(c.kernels[0].stride, c.kernels[0].dilation)) - 1));
    const detail::contraction_planner form(x, c);
    for (unsigned spread = 0; spread <= form.spreading(); ++spread) {
      const layer_plan p = form.plan({{}, {}, spread});
      if (p.why.is(code::padding_leaves_nothing)) continue;
      INFO("round " << round << (spread > 0 ? ", terms" : ", halo"));
      REQUIRE(p.why.ok());
      const sliding& s = c.kernels[0];
      REQUIRE(p.output().dims[2].extent ==
              (e[2] - 1) * s.stride - s.before - s.after + s.dilation * (s.kernel - 1) + c.output_padding[0] + 1);
      const index_t comes = lacking(p.used(), p.given()) + lacking(p.raw(), p.output());
      REQUIRE(cost_between(p.given(), p.used()).total + cost_between(p.raw(), p.output()).total == comes);
      REQUIRE(cost_between(cotangent(p.output()), cotangent(p.raw())).total +
                  cost_between(cotangent(p.used()), cotangent(p.given())).total ==
              comes);
      moving[spread] += comes > 0;
    }
  }
  CHECK(moving[0] > 50);
  CHECK(moving[1] > 50);
}

}  // namespace tessera::testing
