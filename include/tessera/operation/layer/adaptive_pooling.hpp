#pragma once

#include <tessera/operation/layer/layers.hpp>
#include <tessera/operation/layer/value_options.hpp>

namespace tessera {

namespace engine {

/// The maximum of all that each output covers, of which there are so many whatever the extents are.
struct adaptive_max_pool_description {
  upsampling covers;
};

}  // namespace engine

namespace detail {

constexpr upsampling covering(const per_dimension& sizes) {
  upsampling u;
  u.mode = interpolation::area;
  if (sizes.count() < 1 || sizes.count() > u.sizes.capacity) u.why = refusal{code::wrong_kernel, sizes.count()};
  for (int i = 0; i < sizes.count() && u.why.ok(); ++i) u.sizes.push(sizes[i]);
  return u;
}

}  // namespace detail

namespace engine {

/// Plans an adaptive maximum: the windows are those of the mean (`interpolation::area`).
constexpr layer_plan plan_of(const adaptive_max_pool_description& layer, const tensor_value& x) {
  layer_plan p = plan_of(layer.covers, x, linearity::nonlinear);
  if (!p.why.ok()) return p;
  p.saves.operands = 1;             // LibTorch's backward reads it
  p.make(p.raw(), element::int64);  // where each maximum is
  return p;
}

}  // namespace engine

namespace nn {

/// The dimensions behind the first two pooled to so many elements each, y the mean of [⌊y·n/m⌋, ⌈(y + 1)·n/m⌉):
/// `adaptive_avg_pool<4, 4>`.
template <index_t... Extents>
struct adaptive_avg_pool : engine::described_layer<adaptive_avg_pool<Extents...>> {
  static constexpr const char* name = "adaptive_avg_pool";
  static constexpr engine::upsampling description() { return tessera::detail::covering({Extents...}); }
};

/// The same of maxima; `with_indices` says where they lie.
template <index_t... Extents>
struct adaptive_max_pool : engine::described_layer<adaptive_max_pool<Extents...>> {
  static constexpr const char* name = "adaptive_max_pool";
  static constexpr engine::adaptive_max_pool_description description() {
    return {tessera::detail::covering({Extents...})};
  }
};

/// `adaptive_avg_pool` as a value: `adaptive_avg_pool_layer{.sizes = {4, 4}}`.
struct adaptive_avg_pool_layer {
  static constexpr const char* name = "adaptive_avg_pool";
  engine::per_dimension sizes{};

  constexpr engine::upsampling description() const { return tessera::detail::covering(sizes); }
  constexpr layer_plan plan(const tensor_value& x) const { return engine::planned(description(), x); }
};

/// `adaptive_max_pool` as a value.
struct adaptive_max_pool_layer {
  static constexpr const char* name = "adaptive_max_pool";
  engine::per_dimension sizes{};

  constexpr engine::adaptive_max_pool_description description() const { return {tessera::detail::covering(sizes)}; }
  constexpr layer_plan plan(const tensor_value& x) const { return engine::planned(description(), x); }
};

}  // namespace nn

template <index_t... Extents>
inline constexpr kind engine::kind_of<nn::adaptive_avg_pool<Extents...>> = kind::layer;
template <index_t... Extents>
inline constexpr kind engine::kind_of<nn::adaptive_max_pool<Extents...>> = kind::layer;

}  // namespace tessera
