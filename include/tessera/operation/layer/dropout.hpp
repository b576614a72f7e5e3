#pragma once

#include <tessera/operation/layer/normalisation_layers.hpp>

namespace tessera {

/// With which probability an element is dropped: `probability<1, 4>`.
template <index_t Numerator, index_t Denominator>
struct probability {};
/// Whole channels of a sample are dropped, not single elements.
struct channelwise {};
/// Dropped elements become the least value of a selu; mean and variance stay.
struct alpha {};

template <index_t Numerator, index_t Denominator>
inline constexpr kind engine::kind_of<probability<Numerator, Denominator>> = kind::option;
template <>
inline constexpr kind engine::kind_of<channelwise> = kind::option;
template <>
inline constexpr kind engine::kind_of<alpha> = kind::option;

namespace detail {

template <index_t Numerator, index_t Denominator>
struct option<probability<Numerator, Denominator>> : option_of_kind<option_kind::probability> {
  static constexpr void apply(layer_options& o) {
    o.drop.probability = fraction(Numerator, Denominator, o.weights.why);
  }
};
template <>
struct option<channelwise> : option_of_kind<option_kind::channelwise> {
  static constexpr void apply(layer_options& o) { o.drop.channelwise = true; }
};
template <>
struct option<alpha> : option_of_kind<option_kind::alpha> {
  static constexpr void apply(layer_options& o) { o.drop.alpha = true; }
};

}  // namespace detail

namespace nn {

/// `dropout` with options that are values.
struct dropout_layer {
  static constexpr const char* name = "dropout";
  double probability = 0.5;
  bool channelwise = false;
  bool alpha = false;

  constexpr engine::dropout_description description() const { return {probability, channelwise, alpha, {}}; }
  constexpr layer_plan plan(const tensor_value& x) const { return engine::planned(description(), x); }
};

/// In training, zeros in place of some elements, and the others larger so that their mean stays (Srivastava et al.
/// 2014). Seed, path, global index and the number of earlier draws choose the elements. That number is in the state
/// dict; the choice is the same on any partition, and after loading.
///
/// Options: `probability<n, d>` (1/2), `channelwise`, `alpha`.
template <class... Options>
struct dropout : engine::described_layer<dropout<Options...>> {
  static constexpr const char* name = "dropout";
  static constexpr engine::option_kinds takes{engine::option_kind::probability, engine::option_kind::channelwise,
                                              engine::option_kind::alpha};
  static constexpr engine::dropout_description description() {
    tessera::detail::layer_options o;
    o.drop = dropout_layer{}.description();
    o = tessera::detail::read_options<Options...>(takes, o);
    o.drop.why = o.weights.why;
    return o.drop;
  }
};

}  // namespace nn

template <class... Options>
inline constexpr kind engine::kind_of<nn::dropout<Options...>> = kind::layer;

}  // namespace tessera
