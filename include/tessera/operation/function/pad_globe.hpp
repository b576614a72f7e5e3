#pragma once

#include <tessera/operation/function/function_layer.hpp>
#include <tessera/operation/function/operands.hpp>
#include <tessera/operation/layer/local_layers.hpp>

namespace tessera {

namespace functions {

/// Rows and columns around a global grid [… lat, lon] whose rows lie at the centres of cells. Columns go around; beyond
/// a pole x[−1 − k, w] = x[k, w + W/2].
///
/// Of a cut dimension a worker has what its windows of 2·width + 1 elements read, so that a convolution of that kernel
/// and stride moves nothing more. Three exchanges bring it: rows in place, and those across each pole. These are a
/// window that steps backwards over rows, and one half a turn away over columns.
struct globe_padding : engine::function {
  static constexpr const char* name = "pad_globe";
  static constexpr engine::saved saves = engine::saved::nothing;
  using held = globe_padding;
  index_t rows = 0;
  index_t columns = 0;
  index_t stride = 1;
  bool negated = false;  ///< the rows beyond the poles, as both components of a vector are there

  constexpr engine::function_value on(const tensor_value& x) const {
    const auto elements = negated ? engine::takes::numbers : engine::takes::everything;
    const refusal why = engine::first_of(engine::check_takes(elements, x.element), fits(x.layout));
    if (!why.ok()) return {{}, why};
    layout y = x.layout;
    pad(y, y.dims.count - 2, rows);
    pad(y, y.dims.count - 1, columns);
    return {{y, x.element},
            engine::first_of(tessera::engine::check(y), engine::plan_elementwise(x.layout, linear).why)};
  }
  constexpr engine::exchange_values exchanges(const tensor_value& x) const {
    engine::exchange_values all = engine::no_items<engine::exchange_value, 4>;
    const int lat = x.layout.dims.count - 2;
    const index_t half = x.layout.dims[lat + 1].extent / 2, below = 2 * x.layout.dims[lat].extent + rows - 1;
    all.push({x.layout, read(x.layout, {stride, -rows, rows, 1}, 0), x.element});
    for (const index_t mirror : {rows - 1, below})  // row P of the padded grid is row mirror − P
      all.push({x.layout, read(x.layout, {-stride, mirror - 2 * rows, mirror, 1}, half), x.element});
    return all;
  }

 private:
  static constexpr engine::linearity linear = engine::linearity::additive;

  constexpr index_t outputs(index_t n) const { return (n - 1) / stride + 1; }

  constexpr refusal fits(const layout& x) const {
    const int lat = x.dims.count - 2;
    if (lat < 0) return refusal{code::dimension_not_there, 1, x.dims.count};
    for (const int d : {lat, lat + 1}) {
      const engine::dimension& dim = x.dims[d];
      const index_t width = d == lat ? rows : columns;
      if (width < 0 || stride < 1) return refusal{code::window_not_positive, d, 2 * width + 1, stride, 1};
      if (dim.extent == dynamic) return refusal{code::windows_need_extent, d};
      if (dim.extent < 1) return refusal{code::nothing_to_pad_from, d, width, width};
      if (width > dim.extent) return refusal{code::reflection_too_wide, d, dim.extent, width};
      if (dim.zigzag && x.levels(d) > 0) return refusal{code::interval_wanted, d};
      if (dim.kind != cover::tiled) return refusal{code::window_without_halo, 0, d};
      if (dim.bounds == engine::learned && stride > 1) return refusal{code::lengths_not_known, d};
    }
    const index_t around = x.dims[lat + 1].extent;
    return rows > 0 && around % 2 != 0 ? refusal{code::half_turn_uneven, lat + 1, around} : refusal{};
  }

  // The padded dimension: whole, or what windows of the outputs read.
  constexpr void pad(layout& x, int d, index_t width) const {
    engine::dimension& dim = x.dims[d];
    const index_t n = dim.extent;
    dim.extent += 2 * width;
    dim.tag = {};
    if (x.levels(d) > 0) dim.hold({stride, 0, 2 * width, 1}, outputs(n), stride == 1);
  }

  // What the grid has of it. Where no axis cuts columns it has all; where none cuts rows, those that are flipped.
  constexpr layout read(layout x, const window& seen, index_t turn) const {
    const int d = x.dims.count - 2;
    engine::dimension &lat = x.dims[d], &lon = x.dims[d + 1];
    if (x.levels(d) > 0) lat.hold(seen, outputs(lat.extent), stride == 1);
    else if (seen.a < 0) lat.hold({-1, seen.b2, seen.b2, 1}, lat.extent + 2 * rows, false);
    if (x.levels(d + 1) > 0)
      lon.hold({stride, turn - columns, turn + columns, 1, 0, 0, boundary::periodic}, outputs(lon.extent), stride == 1);
    return x;
  }
};

/// The same of numbers that a type says.
template <index_t Rows, index_t Columns, index_t Stride, bool Negated>
struct pad_globe : engine::function {
  static constexpr const char* name = globe_padding::name;
  static constexpr engine::saved saves = globe_padding::saves;
  static constexpr globe_padding numbers() {
    globe_padding f;
    f.rows = Rows;
    f.columns = Columns;
    f.stride = Stride;
    f.negated = Negated;
    return f;
  }
  constexpr engine::function_value on(const tensor_value& x) const { return numbers().on(x); }
  constexpr engine::exchange_values exchanges(const tensor_value& x) const { return numbers().exchanges(x); }
};

}  // namespace functions

/// A global grid [… lat, lon] with rows beyond each pole, from half a turn away, and columns around:
/// `pad_globe<1>(x) | nn::conv<8, kernel<3, 3>>{}`.
///
/// Rows lie at the centres of cells. `Negated` is for components of a vector, whose sign changes across a pole.
template <index_t Rows, index_t Columns = Rows, index_t Stride = 1, bool Negated = false, engine::AnyTensor X>
constexpr auto pad_globe(const X& x) {
  return call(functions::pad_globe<Rows, Columns, Stride, Negated>{}, x);
}

}  // namespace tessera
