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
// every worker has whole rows
using rows = ts::partition<grid, ts::whole, ts::whole, ts::blocks<row, col>, ts::whole>;
// every worker has all of some wave numbers
using columns = ts::partition<grid, ts::whole, ts::whole, ts::whole, ts::blocks<row, col>>;
using fields = ts::tensor<pixels, ts::shape<batch, ts::dim<1>, ts::dim<size>, ts::dim<size>>, double>;

// [transform]
/// What every element of a transform needs: all that there is.
constexpr ts::window everything{.a = 1, .b = -size, .b2 = size, .c = 1};
constexpr auto along_rows(ts::index_t n) { return ts::operation("nchw->nchw").linear().resampled('w', everything, n); }
constexpr auto along_columns(ts::index_t n) {
  return ts::operation("nchw->nchw").linear().resampled('h', everything, n);
}

constexpr auto to_row_modes = along_rows(low), from_row_modes = along_rows(size);
constexpr auto to_column_modes = along_columns(2 * low), from_column_modes = along_columns(size);
constexpr auto mixed = ts::operation("nchw,cohw->nohw").multilinear();

inline at::Tensor row_modes(const at::Tensor& x) { return at::fft_fft(x, std::nullopt, 3).narrow(3, 0, low); }
// [end]
inline at::Tensor column_modes(const at::Tensor& x) {
  const at::Tensor y = at::fft_fft(x, std::nullopt, 2);
  return at::cat({y.narrow(2, 0, low), y.narrow(2, size - low, low)}, 2);
}
inline at::Tensor row_values(const at::Tensor& y) { return at::fft_ifft(y, size, 3); }
inline at::Tensor column_values(const at::Tensor& y) {
  const at::Tensor between = at::zeros({y.size(0), y.size(1), size - 2 * low, y.size(3)}, y.options());
  return at::fft_ifft(at::cat({y.narrow(2, 0, low), between, y.narrow(2, low, low)}, 2), std::nullopt, 2);
}

struct lift;
struct modes;
struct points;
struct last;
struct weight;

// [spectral]
struct begins {
  static constexpr auto initial = ts::init::normal(0, 1.0 / width);
};
/// A number for each pair of channels and each wave number, cut as the wave numbers are: no worker has another's.
using spectrum = nn::weight<ts::tensor<columns, ts::shape_of<width, width, 2 * low, low>, ts::complex128>, begins>;

/// Multiplies the low modes of x by weights. Rows are transformed where they are whole, then columns; between them all
/// workers exchange.
struct spectral {
  constexpr auto operator()(auto x) const {
    const auto along = ts::apply<to_row_modes, row_modes>(ts::to<rows>(x) | nn::cast<ts::complex128>{});
    const auto both = ts::apply<to_column_modes, column_modes>(ts::to<columns>(along));
    const auto y =
        ts::apply<from_column_modes, column_values>(ts::einsum<mixed>(both, x | nn::named<weight, spectrum>{}));
    return ts::to<pixels>(real(ts::apply<from_row_modes, row_values>(ts::to<rows>(y))));
  }
};
// [end]

using pointwise = nn::conv<width, ts::kernel<1, 1>>;

/// Li et al. 2021: layers that mix modes, and beside them channels point by point.
struct fourier_layer {
  constexpr auto operator()(auto x) const {
    return (x | nn::named<modes, spectral>{}) + (x | nn::named<points, pointwise>{});
  }
};
struct fourier_operator {
  constexpr auto operator()(auto x) const {
    const auto first = gelu(x | nn::named<lift, pointwise>{} | fourier_layer{});
    const auto second = gelu(first | fourier_layer{});
    return second | fourier_layer{} | nn::named<last, nn::conv<1, ts::kernel<1, 1>>>{};
  }
};
using network = nn::network<fourier_operator, fields>;

}  // namespace fno
