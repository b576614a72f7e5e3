#pragma once

#include <tessera/operation/layer/read_options.hpp>

namespace tessera {

/// The share of the classes that a loss looks at in a step of training, besides those of labels: `sample_rate<1, 10>`.
template <index_t Numerator, index_t Denominator = 1>
struct sample_rate {};
/// Scores are `Scale` times cosines, the label's with a margin of its angle (Deng et al. 2019): `arcface<1, 2, 64>`.
template <index_t Numerator = 1, index_t Denominator = 2, index_t Scale = 64, bool Easy = false>
struct arcface {};

template <index_t... Given>
inline constexpr kind engine::kind_of<sample_rate<Given...>> = kind::option;
template <index_t Numerator, index_t Denominator, index_t Scale, bool Easy>
inline constexpr kind engine::kind_of<arcface<Numerator, Denominator, Scale, Easy>> = kind::option;

namespace detail {

template <index_t Numerator, index_t Denominator>
struct option<sample_rate<Numerator, Denominator>> : option_of_kind<option_kind::sample_rate> {
  static constexpr void apply(layer_options& o) {
    o.scores.sample_rate = fraction(Numerator, Denominator, o.weights.why);
  }
};
template <index_t Numerator, index_t Denominator, index_t Scale, bool Easy>
struct option<arcface<Numerator, Denominator, Scale, Easy>> : option_of_kind<option_kind::arcface> {
  static constexpr void apply(layer_options& o) {
    const double margin = fraction(Numerator, Denominator, o.weights.why);
    o.scores = {o.scores.sample_rate, true, margin, static_cast<double>(Scale), Easy};
  }
};

}  // namespace detail

}  // namespace tessera
