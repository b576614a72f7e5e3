#pragma once

#include <tessera/operation/function/function_layer.hpp>
#include <tessera/operation/function/shaping.hpp>
#include <tessera/operation/layer/local_layers.hpp>

namespace tessera {

namespace functions {

/// Rows and columns around a global grid [… lat … lon …] whose rows lie at the centres of cells: x[−1 − k, w] =
/// x[k, w + W/2] beyond a pole, and columns go around.
///
/// Of a cut dimension a worker has what its windows of 2·width + 1 elements read, so that a convolution of that kernel
/// and stride moves nothing more. Three exchanges bring it: rows in place, and those across each pole, which are a
/// window that steps backwards over rows and one half a turn away over columns.
template <int Lat, int Lon, index_t Rows, index_t Columns, index_t Stride = 1>
struct pad_globe : engine::function {
  static constexpr const char* name = "pad_globe";
  static constexpr engine::saved saves = engine::saved::nothing;

  constexpr engine::function_value on(const tensor_value& x) const {
    if (const refusal why = fits(x.layout); !why.ok()) return {{}, why};
    layout y = x.layout;
    pad(y, Lat, Rows);
    pad(y, Lon, Columns);
    return {{y, x.element}, engine::first_of(tessera::engine::check(y), engine::plan_elementwise(x.layout, linear).why)};
  }
  constexpr engine::exchange_values exchanges(const tensor_value& x) const {
    engine::exchange_values all = engine::no_items<engine::exchange_value, 4>;
    const index_t half = x.layout.dims[Lon].extent / 2, below = 2 * x.layout.dims[Lat].extent + Rows - 1;
    all.push({x.layout, read(x.layout, {Stride, -Rows, Rows, 1}, 0), x.element});
    for (const index_t mirror : {Rows - 1, below})  // row P of the padded grid is row mirror − P
      all.push({x.layout, read(x.layout, {-Stride, mirror - 2 * Rows, mirror, 1}, half), x.element});
    return all;
  }

 private:
  static constexpr engine::linearity linear = engine::linearity::additive;

  static constexpr index_t outputs(index_t n) { return (n - 1) / Stride + 1; }

  static constexpr refusal fits(const layout& x) {
    if (const refusal r = engine::check_dims<Lat, Lon>(x); !r.ok()) return r;
    if (Rows < 0 || Columns < 0 || Stride < 1)
      return refusal{code::window_not_positive, Rows < 0 ? Lat : Lon, 1, Stride, 1};
    for (const int d : {Lat, Lon}) {
      const engine::dimension& dim = x.dims[d];
      const index_t width = d == Lat ? Rows : Columns;
      if (dim.extent == dynamic) return refusal{code::extent_not_static, d};
      if (dim.extent < 1) return refusal{code::nothing_to_pad_from, d, width, width};
      if (width > dim.extent) return refusal{code::reflection_too_wide, d, dim.extent, width};
      if (dim.zigzag && x.levels(d) > 0) return refusal{code::interval_wanted, d};
      if (dim.kind != cover::tiled) return refusal{code::window_without_halo, 0, d};
      if (dim.bounds == engine::learned && Stride > 1) return refusal{code::lengths_not_known, d};
    }
    const index_t around = x.dims[Lon].extent;
    return Rows > 0 && around % 2 != 0 ? refusal{code::half_turn_uneven, Lon, around} : refusal{};
  }

  // The padded dimension: whole, or what windows of the outputs read.
  static constexpr void pad(layout& x, int d, index_t width) {
    engine::dimension& dim = x.dims[d];
    const index_t n = dim.extent;
    dim.extent += 2 * width;
    dim.tag = {};
    if (x.levels(d) > 0) dim.hold({Stride, 0, 2 * width, 1}, outputs(n), Stride == 1);
  }

  // What the grid has of it. Where no axis cuts columns it has all; where none cuts rows, those that are flipped.
  static constexpr layout read(layout x, const window& rows, index_t turn) {
    engine::dimension &lat = x.dims[Lat], &lon = x.dims[Lon];
    if (x.levels(Lat) > 0) lat.hold(rows, outputs(lat.extent), Stride == 1);
    else if (rows.a < 0) lat.hold({-1, rows.b2, rows.b2, 1}, lat.extent + 2 * Rows, false);
    if (x.levels(Lon) > 0)
      lon.hold({Stride, turn - Columns, turn + Columns, 1, 0, 0, boundary::periodic}, outputs(lon.extent), Stride == 1);
    return x;
  }
};

}  // namespace functions

/// A global grid with `Rows` rows beyond each pole, which come from half a turn away, and `Columns` columns around:
/// `pad_globe<2, 3, 1, 1>(x) | nn::conv<8, kernel<3, 3>>{}`.
///
/// Rows lie at the centres of cells. Components of a vector change their sign across a pole, which is not done here.
template <int Lat, int Lon, index_t Rows, index_t Columns = Rows, index_t Stride = 1, engine::AnyTensor X>
constexpr auto pad_globe(const X& x) {
  return call(functions::pad_globe<Lat, Lon, Rows, Columns, Stride>{}, x);
}

}  // namespace tessera
