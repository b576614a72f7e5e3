#include "tests/support/catch.hpp"
#include "tests/support/images.hpp"

#include <tessera/network.hpp>

namespace tessera::testing {

using namespace engine;

namespace {

/// A tensor of volumes over a grid of two by two.
template <class P, class S, class E = double>
using on = tensor<P, S, E>;
template <class Net>
constexpr direction moved = traffic<Net>(bind<batch>(4)).forward;

/// Whether all that is received is what must be.
constexpr bool is_bound(const direction& d, index_t bytes) {
  return d.bytes == bytes && d.lower_bound_bytes == bytes && d.busiest_worker_bytes * 4 == bytes;
}

constexpr refusal said(const nn::fft_layer& layer, const tensor_value& x) { return layer.plan(x).why; }

}  // namespace

TEST_CASE("a transform's result lies as its operand, and is complex unless it is an irfft", "[plan]") {
  using pixels = partition<grid, whole, whole, blocks<row>, blocks<col>>;
  STATIC_REQUIRE(
      std::is_same_v<after<nn::fft<2, 3>>, tensor<pixels, shape<batch, dim<3>, dim<9>, dim<8>>, complex128>>);
  STATIC_REQUIRE(
      std::is_same_v<after<nn::rfft<2, 3>>, tensor<pixels, shape<batch, dim<3>, dim<9>, dim<5>>, complex128>>);
  STATIC_REQUIRE(
      std::is_same_v<after<nn::rfft<3, 2>>, tensor<pixels, shape<batch, dim<3>, dim<5>, dim<8>>, complex128>>);
  STATIC_REQUIRE(std::is_same_v<after<nn::rfft<2, 3>, nn::irfft<2, 3>>, image>);
  STATIC_REQUIRE(std::is_same_v<after<nn::rfft<3, 2>, nn::irfft<3, 2, output_size<9>{}>>, image>);
  using rows = partition<grid, whole, whole, blocks<row, col>, whole>;
  STATIC_REQUIRE(std::is_same_v<after<nn::ifft<2, 3, fft_norm::ortho, output_as<rows>{}>>,
                                tensor<rows, shape<batch, dim<3>, dim<9>, dim<8>>, complex128>>);
}

TEST_CASE("dimensions that are cut are made whole one after another, and no more moves than must", "[plan]") {
  using pixels = partition<grid, whole, whole, blocks<row>, blocks<col>>;
  constexpr index_t n = 4 * 3 * 8 * 8;  // elements
  using three = tensor<pixels, shape<batch, dim<3>, dim<8>, dim<8>>, double>;
  // over col reals; over both complex numbers; over row on their way back
  STATIC_REQUIRE(is_bound(moved<sequential_type<three, nn::fft<2, 3>>>, n * 8 / 2 + n * 16 * 3 / 4 + n * 16 / 2));
  // half of them; what comes back is cut evenly
  constexpr direction half = moved<sequential_type<three, nn::rfft<2, 3>>>;
  STATIC_REQUIRE(half.bytes == half.lower_bound_bytes);
  STATIC_REQUIRE(half.bytes * 4 < moved<sequential_type<three, nn::fft<2, 3>>>.bytes * 3);
  // four channels go to four workers: each transforms both dimensions of its own
  using four = tensor<pixels, shape<batch, dim<4>, dim<8>, dim<8>>, double>;
  STATIC_REQUIRE(is_bound(moved<sequential_type<four, nn::fft<2, 3>>>, n / 3 * 4 * 8 * 3 / 4 + n / 3 * 4 * 16 * 3 / 4));
  // whole dimensions stay where they are
  using samples =
      tensor<partition<grid, blocks<row>, blocks<col>, whole, whole>, shape<batch, dim<4>, dim<8>, dim<8>>, double>;
  STATIC_REQUIRE(moved<sequential_type<samples, nn::fft<2, 3>, nn::irfft<3>>> == direction{});
  // pencils: one of three dimensions is whole
  using pencils = tensor<partition<grid, whole, blocks<row>, blocks<col>>, shape_of<8, 8, 8>, complex128>;
  STATIC_REQUIRE(is_bound(moved<sequential_type<pencils, nn::fft<0, 1, 2>>>,
                          8 * 8 * 8 * 16 / 2 + 8 * 8 * 8 * 16 / 2 + 8 * 8 * 8 * 16 * 3 / 4));
  // one dimension has none to exchange with, so all workers have it
  using line = tensor<partition<grid, blocks<row, col>>, shape_of<12>, complex128>;
  STATIC_REQUIRE(moved<sequential_type<line, nn::fft<0>>>.bytes == 4 * 9 * 16);
  // a gradient moves what its operand did, but reals come back as such
  STATIC_REQUIRE(traffic<sequential_type<pencils, nn::fft<0, 1, 2>>>().backward ==
                 traffic<sequential_type<pencils, nn::fft<0, 1, 2>>>().forward);
}

TEST_CASE("a transform that has no meaning is refused", "[plan][refusal]") {
  const layout x = value_of<image>.layout;
  const tensor_value real{bound_all(x, bind<batch>(4)), element::float64};
  const tensor_value complex{real.layout, element::complex64};
  CHECK(said({.dims = {2, 3}}, real).ok());
  CHECK(said({.dims = {0, 1, 2}}, complex).ok());
  CHECK(said({}, real).is(code::transform_dimensions));
  CHECK(said({.dims = {0, 1, 2, 3}}, real).is(code::transform_dimensions));
  CHECK(said({.dims = {2, 3, 2}}, real).is(code::transform_dimensions));
  CHECK(said({.dims = {4}}, real).is(code::dimension_not_there));
  CHECK(said({.dims = {-1}}, real).is(code::dimension_not_there));
  CHECK(said({.dims = {3}, .real = true}, complex).is(code::no_function_of_element));
  CHECK(said({.dims = {3}}, {real.layout, element::int64}).is(code::no_function_of_element));
  CHECK(said({.dims = {3}}, {real.layout, element::bfloat16}).is(code::no_function_of_element));
  CHECK(said({.dims = {0}, .real = true}, {x, element::float64}).is(code::extent_not_static));
  const auto back = [](index_t n) { return nn::fft_layer{.dims = {3}, .inverse = true, .real = true, .length = n}; };
  CHECK(said(back(14), complex).ok());
  CHECK(said(back(15), complex).ok());
  CHECK(said(back(16), complex).is(code::transform_length));
  CHECK(said(back(-1), complex).is(code::transform_length));
  CHECK(said({.dims = {3}, .length = 8}, complex).is(code::transform_length));
  layout none = real.layout;
  none.dims[3].extent = 0;
  CHECK(said({.dims = {3}}, {none, element::float64}).is(code::transform_length));
  layout most = real.layout;
  most.set_placement(0, partial_by(combine::max));
  CHECK(said({.dims = {3}}, {most, element::float64}).is(code::nonlinear_on_partial));
  most.set_placement(0, partial_by(combine::sum));
  CHECK(said({.dims = {3}}, {most, element::float64}).ok());
  const layout haloed = real.layout.halo(2, {3, 1, 1, 1, 1});
  CHECK(said({.dims = {3}}, {haloed, element::float64}).is(code::not_a_tiling));
  layout flat = real.layout;
  flat.dims.count = 2;
  CHECK(said({.dims = {3}, .output_as = flat}, real).is(code::wrong_number_of_dimensions));
}

TEST_CASE("a spectral convolution moves halves of reals and the wave numbers that are kept", "[plan]") {
  using pixels = partition<grid, whole, whole, blocks<row>, blocks<col>>;
  using three = tensor<pixels, shape<batch, dim<3>, dim<8>, dim<8>>, double>;
  using net = sequential_type<three, nn::spectral_conv<5, 2, 4>>;
  STATIC_REQUIRE(std::is_same_v<net::output, tensor<pixels, shape<batch, dim<5>, dim<8>, dim<8>>, double>>);
  // over col reals; over both four wave numbers of a row; and back of five channels
  constexpr index_t rows = 4 * 8;
  STATIC_REQUIRE(
      is_bound(moved<net>, 3 * rows * (8 * 8 / 2 + 4 * 16 * 3 / 4) + 5 * rows * (4 * 16 * 3 / 4 + 8 * 8 / 2)));
  // each worker has the weights of its own wave numbers, and nothing of them is summed
  constexpr layer_plan p = nn::spectral_conv<5, 2, 4>::plan(value_of<three>);
  STATIC_REQUIRE(p.stored(0).part_count(3) == 4);
  STATIC_REQUIRE(same(p.stored(0), p.weight(0)));
  // samples that are cut have weights alike
  using samples = tensor<partition<grid, blocks<row, col>, whole, whole>, shape<batch, dim<3>, dim<8>>, float>;
  constexpr layer_plan alike = nn::spectral_conv<5, 5>::plan(value_of<samples>);
  STATIC_REQUIRE(alike.stored(0).placements[0].kind == placement::invariant);
  STATIC_REQUIRE(alike.parameter(0).element == element::complex64);
  STATIC_REQUIRE(moved<sequential_type<samples, nn::spectral_conv<5, 5>>> == direction{});
}

TEST_CASE("a spectral convolution that has no meaning is refused", "[plan][refusal]") {
  const tensor_value x{bound_all(value_of<image>.layout, bind<batch>(4)), element::float64};  // 4 x 3 x 9 x 8
  const auto told = [](const tensor_value& in, index_t out, const per_dimension& modes) {
    return nn::spectral_conv_layer{out, modes}.plan(in).why;
  };
  CHECK(told(x, 2, {4, 5}).ok());
  CHECK(told(x, 2, {5, 5}).is(code::transform_modes));
  CHECK(told(x, 2, {4, 6}).is(code::transform_modes));
  CHECK(told(x, 2, {0, 1}).is(code::transform_modes));
  CHECK(told(x, 0, {4, 5}).is(code::extent_negative));
  CHECK(told(x, 2, {4, 4, 4}).is(code::layer_takes_other_dimensions));
  CHECK(told(x, 2, {}).is(code::transform_dimensions));
  CHECK(told(x, 2, {1, 1, 1, 1}).is(code::transform_dimensions));
  CHECK(told({x.layout, element::complex128}, 2, {4, 5}).is(code::no_function_of_element));
  tensor_value unknown = x;
  unknown.layout.dims[3].extent = dynamic;
  CHECK(told(unknown, 2, {4, 5}).is(code::extent_not_static));
  tensor_value copies{x.layout, element::float64};
  copies.layout.set_placement(0, {});
  copies.layout.set_placement(0, {placement::cut, 0});
  copies.layout = copies.layout.halo(0, {3, 1, 1, 1, 1});
  CHECK(told(copies, 2, {4, 5}).is(code::haloed_summed));
}

}  // namespace tessera::testing
