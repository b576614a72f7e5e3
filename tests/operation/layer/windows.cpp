#include "tests/support/catch.hpp"
#include "tests/support/images.hpp"

#include <tessera/network.hpp>
#include <tessera/operation/layer/layer_values.hpp>

namespace tessera::testing {

using namespace engine;

TEST_CASE("a window that steps by one and gives as many leaves parts as they are, and halos alone move", "[plan]") {
  struct up : axis<4> {};
  using line = mesh<up>;
  using taps = nn::conv<2, kernel<3>, padding<1>>;
  using mean = nn::avg_pool<kernel<3>, stride<1>, padding<1>>;
  using uneven =
      tensor<partition<line, whole, whole, lengths<up, dim<7>, dim<1>, dim<0>, dim<5>>>, shape_of<1, 2, 13>, double>;
  // The parts 7 | 1 | | 5 lack 1, 2, 0 and 1 of their neighbours' elements, of two channels.
  constexpr index_t halo = 8 * 2 * (1 + 2 + 0 + 1);
  using net = sequential_type<uneven, taps, nn::relu, mean, nn::conv<2, kernel<3>, padding_same>>;
  STATIC_REQUIRE(std::is_same_v<net::output, uneven>);
  constexpr traffic_value all = traffic<net>();
  STATIC_REQUIRE(all.forward.bytes == 3 * halo);
  STATIC_REQUIRE(all.forward.lower_bound_bytes == 3 * halo);
  constexpr index_t weights = 8 * 2 * (4 - 1) * (2 * 2 * 3 + 2);  // an all_reduce of each convolution's
  STATIC_REQUIRE(all.backward.bytes == 3 * halo + 2 * weights);
  // A chain that shares a halo: it reaches two beyond each part.
  using chain = sequential_type<uneven, nn::fused_halo<taps, nn::relu, taps>>;
  STATIC_REQUIRE(std::is_same_v<chain::output, uneven>);
  STATIC_REQUIRE(traffic<chain>().forward.bytes == 8 * 2 * (2 + 4 + 0 + 2));
  // Whatever reads a tiling so leaves it: other boundaries, transposes, factors of one; turned deals, grains, ranges,
  // parts to be learned.
  using ring = nn::conv<2, kernel<3>, padding<1>, padding_mode<boundary::periodic>>;
  STATIC_REQUIRE(std::is_same_v<sequential_type<uneven, ring>::output, uneven>);
  STATIC_REQUIRE(std::is_same_v<sequential_type<uneven, nn::conv_transpose<2, kernel<3>, padding<1>>>::output, uneven>);
  STATIC_REQUIRE(
      std::is_same_v<sequential_type<uneven, nn::max_pool<kernel<3>, stride<1>, padding<1>>>::output, uneven>);
  STATIC_REQUIRE(
      std::is_same_v<sequential_type<uneven, nn::upsample<factor<1>, mode<interpolation::linear>>>::output, uneven>);
  STATIC_REQUIRE(std::is_same_v<sequential_type<uneven, nn::pad<padding_at<1, -1>>>::output, uneven>);
  using turned = tensor<partition<line, whole, whole, rotated<grains<2, up>, 1>>, shape_of<1, 2, 13>, double>;
  STATIC_REQUIRE(std::is_same_v<sequential_type<turned, taps, mean>::output, turned>);
  using range = tensor<partition<line, whole, whole, haloed<blocks<up>, 13, 1, -2, -2>>, shape_of<1, 2, 10>, double>;
  STATIC_REQUIRE(std::is_same_v<sequential_type<range, taps>::output, range>);
  STATIC_REQUIRE(std::is_same_v<sequential_type<range, nn::conv<2, kernel<1>>>::output, range>);
  STATIC_REQUIRE(std::is_same_v<sequential_type<range, nn::fused_halo<taps, nn::relu, taps>>::output, range>);
  using unknown = tensor<partition<line, whole, whole, lengths<up>>, shape<dim<1>, dim<2>, batch>, double>;
  STATIC_REQUIRE(value_of<sequential_type<unknown, taps, nn::relu, mean>::output>.layout.dims[2].bounds == learned);
  // Others are balanced: fewer outputs, more, or a step of two.
  using balanced = tensor<partition<line, whole, whole, blocks<up>>, shape_of<1, 2, 13>, double>;
  const auto as_even = [](auto layer) {
    using one = sequential_type<uneven, decltype(layer)>;
    return std::is_same_v<typename one::output, typename sequential_type<balanced, decltype(layer)>::output>;
  };
  CHECK(as_even(nn::conv<2, kernel<3>>{}));
  CHECK(as_even(nn::conv<2, kernel<3>, padding<2>>{}));
  CHECK(as_even(nn::conv<2, kernel<3>, padding<1>, stride<2>>{}));
  CHECK(as_even(nn::max_pool<kernel<2>>{}));
}

TEST_CASE("each dimension of a kernel has a boundary of its own, or all have one", "[plan][refusal]") {
  struct x_axis : axis<2> {};
  struct y_axis : axis<2> {};
  using plane = tensor<partition<mesh<x_axis, y_axis>, whole, whole, blocks<x_axis>, blocks<y_axis>>,
                       shape_of<1, 1, 6, 4>, double>;
  using ring_and_ends = nn::conv<1, kernel<3, 3>, padding<1>, padding_mode<boundary::periodic, boundary::zero>>;
  constexpr layer_plan p = ring_and_ends::plan(value_of<plane>);
  STATIC_REQUIRE((p.used().dims[2].needs.edge == boundary::periodic && p.used().dims[3].needs.edge == boundary::zero));
  // In a ring of two each lacks a row at either end, and one column, of what is five rows high then.
  STATIC_REQUIRE(traffic<sequential_type<plane, ring_and_ends>>().forward.bytes == 8 * 4 * ((3 + 2) * (2 + 1) - 3 * 2));
  STATIC_REQUIRE(
      ring_and_ends::plan(value_of<plane>).used() ==
      nn::conv_layer{.out = 1, .kernel = {3, 3}, .padding = {1}, .padding_mode = {boundary::periodic, boundary::zero}}
          .plan(value_of<plane>)
          .used());
  STATIC_REQUIRE(
      nn::conv_layer{.out = 1, .kernel = {3, 3}, .padding_mode = boundary::reflect}.description().kernels[1].edge ==
      boundary::reflect);
  STATIC_REQUIRE(nn::pad<padding_at<1, 1, 2, 2>, padding_mode<boundary::zero, boundary::replicate>>::description()
                     .widths[1]
                     .edge == boundary::replicate);
  CHECK(nn::pad_layer{.widths = {1, 1, 2, 2}, .padding_mode = {boundary::zero, boundary::replicate}}
            .description()
            .widths[1]
            .edge == boundary::replicate);
  CHECK(nn::conv<1, kernel<3, 3, 3>, padding_mode<boundary::periodic, boundary::zero>>::description().why.is(
      code::option_of_other_dimensions));
  CHECK(nn::conv_layer{.out = 1, .kernel = {3}, .padding_mode = {boundary::periodic, boundary::zero}}
            .description()
            .why.is(code::option_of_other_dimensions));
  CHECK(nn::pad_layer{.widths = {1, 1}, .padding_mode = {boundary::zero, boundary::zero}}
            .plan(value_of<plane>)
            .why.is(code::option_of_other_dimensions));
}

TEST_CASE("padding that keeps the extents is the kernel's, the odd one at the end", "[plan]") {
  constexpr contraction c = nn::conv<4, padding_same, kernel<4, 3>, dilation<1, 3>>::description();
  STATIC_REQUIRE(
      (c.kernels[0].before == 1 && c.kernels[0].after == 2 && c.kernels[1].before == 3 && c.kernels[1].after == 3));
  STATIC_REQUIRE(std::is_same_v<after<nn::conv<4, padding_same, kernel<4, 3>>>,
                                after<nn::conv<4, kernel<4, 3>, padding_at<1, 2, 1, 1>>>>);
  STATIC_REQUIRE(std::is_same_v<after<nn::conv<4, padding_valid, kernel<4, 3>>>, after<nn::conv<4, kernel<4, 3>>>>);
}

TEST_CASE("what reads a zigzag where it lies leaves it, and what needs neighbours refuses it", "[plan][refusal]") {
  struct ring : axis<3> {};
  using line = mesh<ring>;
  using rows = tensor<partition<line, whole, zigzag<ring>, whole>, shape_of<2, 13, 4>>;
  using labels = tensor<partition<line, whole, zigzag<ring>>, shape_of<2, 13>, std::int64_t>;
  // elementwise, products along other dimensions, look-ups, norms: no byte moves forward
  STATIC_REQUIRE(std::is_same_v<sequential_type<rows, nn::relu, nn::layer_norm<over_last<1>>>::output, rows>);
  using wide = sequential_type<rows, nn::linear<5>>;
  STATIC_REQUIRE(std::is_same_v<wide::output, tensor<partition<line, whole, zigzag<ring>, whole>, shape_of<2, 13, 5>>>);
  STATIC_REQUIRE(traffic<wide>().forward.bytes == 0);
  STATIC_REQUIRE(traffic<wide>().backward.bytes == 2 * 2 * 4 * (5 * 4 + 5));  // an all_reduce of weight and bias
  using looked_up = sequential_type<labels, nn::embedding<7, 4>>;
  STATIC_REQUIRE(std::is_same_v<looked_up::output, rows>);
  STATIC_REQUIRE(traffic<looked_up>().forward.bytes == 0);
  // A weight along a dimension that is dealt so is dealt alike, and the sum over it is pending.
  using features = tensor<partition<line, whole, zigzag<ring>>, shape_of<2, 13>>;
  static constexpr signature product = operation("ab,cb->ac").multilinear();
  STATIC_REQUIRE(std::is_same_v<operation_type<product, features, features>,
                                tensor<partition<line, whole, whole, partial<ring>>, shape_of<2, 2>>>);
  constexpr layer_plan dealt = plan_of(nn::linear<5, cut_in<ring>>::description(), value_of<features>);
  STATIC_REQUIRE(dealt.why.ok());
  // Dimensions that are joined or split keep the deal in whole runs; where a run is cut they are refused.
  static constexpr signature join = operation("bc->z").merged("bc", 'z').linear();
  using one = tensor<partition<line, zigzag<ring>, whole>, shape_of<13, 4>>;
  using joined = tensor<partition<line, zigzag<grains<4, ring>>>, shape_of<52>>;
  STATIC_REQUIRE(std::is_same_v<operation_type<join, one>, joined>);
  const auto split = [](const layout& x, index_t inner) {
    static_vector<operand, 4> all;
    all.push({x, false});
    return infer(operation("z->bc").split('z', 'b', 'c', inner).linear(), all);
  };
  CHECK(same(split(value_of<joined>.layout, 4).layout, value_of<one>.layout));
  const layout& even = value_of<tensor<partition<line, zigzag<ring>>, shape_of<24>>>.layout;
  CHECK(split(even, 4).why.ok());                          // six chunks of four
  CHECK(split(even, 8).why.is(code::split_through_part));  // but three parts of eight
  // Windows.
  using images = tensor<partition<line, whole, whole, zigzag<ring>>, shape_of<1, 2, 13>>;
  const tensor_value x = value_of<images>;
  CHECK(plan_of(nn::conv<2, kernel<3>, padding<1>>::description(), x).why.is(code::interval_wanted));
  CHECK(plan_of(nn::conv_transpose<2, kernel<3>, padding<1>>::description(), x).why.is(code::interval_wanted));
  CHECK(plan_of(nn::max_pool<kernel<2>>::description(), x).why.is(code::interval_wanted));
  CHECK(plan_of(nn::pad<padding_at<1, 1>>::description(), x).why.is(code::interval_wanted));
  CHECK(nn::slice<2, 1, 9>::plan(x).why.is(code::interval_wanted));
  static_vector<halo_step, 16> steps;
  steps.push(detail::step_of(nn::conv<2, kernel<3>, padding<1>>::description()));
  CHECK(plan_fused_halo(x.layout, steps).why.is(code::interval_wanted));
  static_vector<operand, 4> all;
  all.push({x.layout, false});
  CHECK(infer(operation("abc->abc").narrowed('c', 1, 9), all).why.is(code::interval_wanted));
  CHECK(infer(operation("abc->abc").windowed('c', sliding{3, 1, 1, 1, 1}), all).why.is(code::interval_wanted));
}

}  // namespace tessera::testing
