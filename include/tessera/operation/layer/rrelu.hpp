#pragma once

#include <tessera/operation/layer/dropout.hpp>

namespace tessera {

/// The least slope that is drawn: `lower<1, 8>`.
template <index_t Numerator, index_t Denominator>
struct lower {};
/// The largest one: `upper<1, 3>`.
template <index_t Numerator, index_t Denominator>
struct upper {};

template <index_t Numerator, index_t Denominator>
inline constexpr kind engine::kind_of<lower<Numerator, Denominator>> = kind::option;
template <index_t Numerator, index_t Denominator>
inline constexpr kind engine::kind_of<upper<Numerator, Denominator>> = kind::option;

namespace detail {

template <index_t Numerator, index_t Denominator>
struct option<lower<Numerator, Denominator>> : option_of_kind<option_kind::lower> {
  static constexpr void apply(layer_options& o) { o.slopes.lower = fraction(Numerator, Denominator, o.weights.why); }
};
template <index_t Numerator, index_t Denominator>
struct option<upper<Numerator, Denominator>> : option_of_kind<option_kind::upper> {
  static constexpr void apply(layer_options& o) { o.slopes.upper = fraction(Numerator, Denominator, o.weights.why); }
};

}  // namespace detail

namespace nn {

/// `rrelu` with options that are values.
struct rrelu_layer {
  static constexpr const char* name = "rrelu";
  double lower = 1.0 / 8;
  double upper = 1.0 / 3;

  constexpr engine::rrelu_description description() const { return {lower, upper, {}}; }
  constexpr layer_plan plan(const tensor_value& x) const { return engine::planned(description(), x); }
};

/// max(x, 0) + r·min(x, 0), with a slope r of each element that is drawn anew in training, and is the mean of the
/// bounds else (Xu et al. 2015). It is drawn as `dropout` draws: the same on any partition, and behind a loading.
///
/// Options: `lower<n, d>` (1/8), `upper<n, d>` (1/3).
template <class... Options>
struct rrelu : engine::described_layer<rrelu<Options...>> {
  static constexpr const char* name = "rrelu";
  static constexpr engine::option_kinds takes{engine::option_kind::lower, engine::option_kind::upper};
  static constexpr engine::rrelu_description description() {
    const tessera::detail::layer_options o = tessera::detail::read_options<Options...>(takes);
    return {o.slopes.lower, o.slopes.upper, o.weights.why};
  }
};

}  // namespace nn

template <class... Options>
inline constexpr kind engine::kind_of<nn::rrelu<Options...>> = kind::layer;

}  // namespace tessera
