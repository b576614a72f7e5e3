#include "tests/support/catch.hpp"

#include <tessera/functions.hpp>

namespace tessera::testing::routing_plans {

using namespace engine;

namespace {

struct place : axis<4> {};
struct other : axis<2> {};
using grid = mesh<other, place>;
template <index_t Rows>
using rows = tensor<partition<grid, blocks<other, place>, whole>, shape_of<Rows, 6>, float>;
template <index_t Rows, index_t Experts>
using scores = tensor<partition<grid, blocks<other, place>, whole>, shape_of<Rows, Experts>, float>;

/// The bytes of rows that a plan moves, and of the numbers of 4 and 8 bytes beside them.
template <class Route, index_t Rows, index_t Experts>
traffic_value moved_rows() {
  const layer_plan p = Route::plan(value_of<rows<Rows>>, value_of<scores<Rows, Experts>>);
  traffic_value t;
  if (p.why.ok()) t = traffic_of(p.from(0), p.to(0), element::float32);
  return t;
}

}  // namespace

TEST_CASE("a row goes once to each worker that has some of its experts, forward and backward", "[plan]") {
  // With all experts chosen and room for all, each row goes to the three other places, however many experts are there.
  using all = nn::route<8, choices<8>, capacity<8>, over_experts<place>>;
  const traffic_value once = moved_rows<all, 48, 8>();
  const index_t bound = 4 * 6 * 48 * (4 - 1);
  CHECK(once.forward.bytes == bound);
  CHECK(once.backward.bytes == bound);
  CHECK(once.forward.lower_bound_bytes == bound);
  // Slots of experts would take the row twice to a place that has two of them.
  CHECK(moved_rows<nn::route<4, choices<4>, capacity<8>, over_experts<place>>, 48, 4>().forward.bytes == bound);
  CHECK(moved_rows<nn::route<16, choices<16>, capacity<8>, over_experts<place>>, 48, 16>().forward.bytes == bound);
  // Slots that are fewer than rows bound what goes: 6 rows a worker, one choice, an even share of 6 / 4 rounded up.
  CHECK(moved_rows<nn::route<4, capacity<1>, over_experts<place>>, 48, 4>().forward.bytes == 4 * 6 * 8 * 2 * (4 - 1));
  // Nothing moves where experts are cut by nothing.
  CHECK(moved_rows<nn::route<8, choices<2>, capacity<1>, over_experts<>>, 48, 8>().forward.bytes == 0);
}

TEST_CASE("slots lie where experts are, groups where rows were", "[plan]") {
  using route = nn::route<6, choices<2>, capacity<3, 2>, over_experts<place>>;
  const layer_plan p = route::plan(value_of<rows<20>>, value_of<scores<20, 6>>);
  REQUIRE(p.why.ok());
  // 3 rows of the largest part, ⌈1.5 · 3 · 2 / 6⌉ slots
  using slots = tensor<partition<grid, blocks<place>, blocks<other>, whole, whole>, shape_of<6, 8, 2, 6>, float>;
  using gates = tensor<partition<grid, blocks<place>, blocks<other>, whole, whole>, shape_of<4, 8, 3, 2>, float>;
  CHECK(same(p.output(0), value_of<slots>.layout));
  CHECK(same(p.output(1), value_of<gates>.layout));
  CHECK(same(p.output(2), value_of<gates>.layout));
  CHECK(same(p.output(3), value_of<scores<20, 6>>.layout));
  const tensor_value y{p.output(0), element::float32}, weights{p.output(1), element::float32},
      numbers{p.output(2), element::int64}, chosen{p.output(3), element::int64};
  const layer_plan back = nn::combine::plan(y, weights, numbers, chosen);
  REQUIRE(back.why.ok());
  CHECK(same(back.output(), value_of<rows<20>>.layout));
  CHECK(back.element_of(0, y.element) == element::float32);
  CHECK(traffic_of(back.from(0), back.to(0), element::float32).forward ==
        traffic_of(p.from(0), p.to(0), element::float32).backward);
}

namespace {

std::string code_of(const refusal& r) { return r.ok() ? "none" : r.because->code; }

}  // namespace

TEST_CASE("routers refuse rows and options that fit nothing", "[refusal]") {
  const auto planned = [](auto route, const tensor_value& x, const tensor_value& s) {
    return code_of(decltype(route)::plan(x, s).why);
  };
  using four = scores<48, 4>;
  CHECK(planned(nn::route<4>{}, value_of<rows<48>>, value_of<four>) == "none");
  CHECK(planned(nn::route<4, choices<5>>{}, value_of<rows<48>>, value_of<four>) == "tessera.route.choices");
  CHECK(planned(nn::route<4, capacity<0>>{}, value_of<rows<48>>, value_of<four>) == "tessera.route.capacity");
  using by_feature = tensor<partition<grid, blocks<other>, blocks<place>>, shape_of<48, 6>, float>;
  using of_other = tensor<partition<grid, blocks<other>, whole>, shape_of<48, 4>, float>;
  CHECK(planned(nn::route<4, over_experts<place>>{}, value_of<by_feature>, value_of<of_other>) == "tessera.route.over");
  CHECK(planned(nn::route<4>{}, value_of<by_feature>, value_of<four>) == "tessera.rule.cut");
  CHECK(planned(nn::route<4>{}, value_of<rows<48>>, value_of<scores<47, 4>>) == "tessera.shape.extent");
  using inside = tensor<partition<grid, blocks<other>, blocks<place>, whole>, shape_of<6, 8, 6>, float>;
  using inside_scores = tensor<partition<grid, blocks<other>, blocks<place>, whole>, shape_of<6, 8, 4>, float>;
  CHECK(planned(nn::route<4>{}, value_of<inside>, value_of<inside_scores>) == "none");
  CHECK(planned(nn::route<4, capacity<1>, groups<3>>{}, value_of<inside>, value_of<inside_scores>) ==
        "tessera.route.groups");
  CHECK(code_of(nn::route<4, capacity<1, 0>>::description().check()) == "tessera.layer.fraction");
}

}  // namespace tessera::testing::routing_plans
