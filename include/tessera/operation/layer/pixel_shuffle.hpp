#pragma once

#include <tessera/operation/layer/layers.hpp>
#include <tessera/operation/rule/split_dimension.hpp>

namespace tessera {

namespace engine {

/// Elements that change places between channels and space: r to a side.
struct pixel_shuffle_description {
  index_t factor = 1;
  bool back = false;  ///< from space to channels

  /// How many channels share a place in space, of so many dimensions.
  constexpr index_t channels(int space) const {
    index_t all = 1;
    for (int i = 0; i < space; ++i) all = detail::capped_product(all, factor);
    return all;
  }
};

/// Plans a pixel shuffle or its inverse. Elements that are shuffled together lie on one worker; a cut through them
/// moves to where it separates none.
constexpr layer_plan plan_of(const pixel_shuffle_description& layer, const tensor_value& in) {
  const layout& x = in.layout;
  const int space = x.dims.count - 2;
  if (space < 1 || space > 3) return refused_layer(refusal{code::layer_takes_other_dimensions, 4, x.dims.count});
  if (layer.factor < 1 || layer.factor >= index_t{1} << 31)
    return refused_layer(refusal{code::factor_not_positive, 1, layer.factor});
  const index_t channels = layer.channels(space);
  const letters own = letters_of(x.dims.count);
  inferred y{x, {}};
  signature grows;
  for (int d = 1; d < x.dims.count && y.why.ok(); ++d) {
    const index_t n = d == 1 ? channels : layer.factor;
    const bool splits = layer.back == (d > 1);
    y.why = detail::hold_together(y.layout, d, splits ? n : 1);
    if (!splits) grows = grows.scaled(own[d], n);
  }
  if (y.why.ok()) y.why = check_change(x, y.layout);
  const layout used = y.layout;
  for (int d = 1; d < x.dims.count && y.why.ok(); ++d)
    if (layer.back == (d > 1)) y = detail::outer_part(y.layout, d, d == 1 ? channels : layer.factor);
  if (y.why.ok()) y = detail::reshaped(y.layout, own, own, grows);
  layer_plan p;
  p.why = y.why;
  p.add_input(x, used);
  p.add_output(y.layout);
  p.saves = saved_tensors::saving(0);
  return p;
}

}  // namespace engine

namespace nn {

/// [n, c·r², h, w] → [n, c, h·r, w·r], y[n, c, h·r + i, w·r + j] = x[n, (c·r + i)·r + j, h, w] (Shi et al. 2016). With
/// one or three dimensions of space the factor is r or r³.
template <index_t Factor>
struct pixel_shuffle : engine::described_layer<pixel_shuffle<Factor>> {
  static constexpr const char* name = "pixel_shuffle";
  static constexpr engine::pixel_shuffle_description description() { return {Factor}; }
};

/// Its inverse, [n, c, h·r, w·r] → [n, c·r², h, w].
template <index_t Factor>
struct pixel_unshuffle : engine::described_layer<pixel_unshuffle<Factor>> {
  static constexpr const char* name = "pixel_unshuffle";
  static constexpr engine::pixel_shuffle_description description() { return {Factor, true}; }
};

/// `pixel_shuffle` as a value.
struct pixel_shuffle_layer {
  static constexpr const char* name = "pixel_shuffle";
  index_t factor = 1;

  constexpr engine::pixel_shuffle_description description() const { return {factor}; }
  constexpr layer_plan plan(const tensor_value& x) const { return engine::planned(description(), x); }
};

/// `pixel_unshuffle` as a value.
struct pixel_unshuffle_layer {
  static constexpr const char* name = "pixel_unshuffle";
  index_t factor = 1;

  constexpr engine::pixel_shuffle_description description() const { return {factor, true}; }
  constexpr layer_plan plan(const tensor_value& x) const { return engine::planned(description(), x); }
};

}  // namespace nn

template <index_t Factor>
inline constexpr kind engine::kind_of<nn::pixel_shuffle<Factor>> = kind::layer;
template <index_t Factor>
inline constexpr kind engine::kind_of<nn::pixel_unshuffle<Factor>> = kind::layer;

}  // namespace tessera
