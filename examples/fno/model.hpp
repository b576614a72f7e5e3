#pragma once

#include <ATen/ATen.h>
#include <tessera/tessera.hpp>

namespace fno {

namespace ts = tessera;
namespace nn = tessera::nn;

struct row : ts::axis<2> {};
struct col : ts::axis<2> {};
using grid = ts::mesh<row, col>;
struct batch : ts::dyn {};

// of a side, channels, and the wave numbers 0 … 5 of a row; −6 … 5 of a column
constexpr ts::index_t size = 32, width = 8, low = 6;

using pixels = ts::partition<grid, ts::whole, ts::whole, ts::blocks<row>, ts::blocks<col>>;
using fields = ts::tensor<pixels, ts::shape<batch, ts::dim<1>, ts::dim<size>, ts::dim<size>>, double>;

struct lift;
struct modes;
struct points;
struct last;

using pointwise = nn::conv<width, ts::kernel<1, 1>>;

// [layer]
/// Li et al. 2021: layers that mix modes, and beside them channels point by point.
struct fourier_layer {
  constexpr auto operator()(auto x) const {
    return (x | nn::named<modes, nn::spectral_conv<width, low, low>>{}) + (x | nn::named<points, pointwise>{});
  }
};
// [end]
struct fourier_operator {
  constexpr auto operator()(auto x) const {
    const auto first = gelu(x | nn::named<lift, pointwise>{} | fourier_layer{});
    const auto second = gelu(first | fourier_layer{});
    return second | fourier_layer{} | nn::named<last, nn::conv<1, ts::kernel<1, 1>>>{};
  }
};
using network = nn::network<fourier_operator, fields>;

}  // namespace fno
