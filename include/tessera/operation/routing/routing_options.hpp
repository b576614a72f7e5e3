#pragma once

#include <tessera/operation/layer/normalisation_layers.hpp>
#include <tessera/operation/layer/read_options.hpp>

namespace tessera {

/// How many experts a row has; 1 unless said.
template <index_t Count>
struct choices {};
/// The slots that an expert has for a group of rows, over an even share of them: `capacity<5, 4>`. Without it no row is
/// dropped.
template <index_t Numerator, index_t Denominator = 1>
struct capacity {};
/// The axes that cut the experts, outermost first; those that cut the rows unless said.
template <class... Axes>
struct over_experts {};
/// A gate is the sigmoid of its score, not the softmax of the row's.
struct sigmoid_gates {};
/// The gates of a row add up to 1.
struct normalised_gates {};
/// Full experts drop the rows of smallest gate, not those that come last.
struct drop_by_score {};
/// Training adds normal numbers of this deviation to the scores, keyed by global index: `noise<1, 100>`.
template <index_t Numerator, index_t Denominator>
struct noise {};
/// Biases are added to the gates for the choice alone. Each training step adds this much to those of experts with less
/// than an even share, and takes it from the others (Wang et al. 2024).
template <index_t Numerator, index_t Denominator>
struct balanced_by_bias {};

template <index_t Count>
inline constexpr kind engine::kind_of<choices<Count>> = kind::option;
template <index_t Numerator, index_t Denominator>
inline constexpr kind engine::kind_of<capacity<Numerator, Denominator>> = kind::option;
template <class... Axes>
inline constexpr kind engine::kind_of<over_experts<Axes...>> = kind::option;
template <>
inline constexpr kind engine::kind_of<sigmoid_gates> = kind::option;
template <>
inline constexpr kind engine::kind_of<normalised_gates> = kind::option;
template <>
inline constexpr kind engine::kind_of<drop_by_score> = kind::option;
template <index_t Numerator, index_t Denominator>
inline constexpr kind engine::kind_of<noise<Numerator, Denominator>> = kind::option;
template <index_t Numerator, index_t Denominator>
inline constexpr kind engine::kind_of<balanced_by_bias<Numerator, Denominator>> = kind::option;

namespace detail {

template <index_t Count>
struct option<choices<Count>> : option_of_kind<option_kind::choices> {
  static constexpr void apply(layer_options& o) { o.routes.choices = Count; }
};
template <index_t Numerator, index_t Denominator>
struct option<capacity<Numerator, Denominator>> : option_of_kind<option_kind::capacity> {
  static constexpr void apply(layer_options& o) {
    o.routes.is_limited = true;
    o.routes.capacity = fraction(Numerator, Denominator, o.weights.why);
  }
};
template <class... Axes>
struct option<over_experts<Axes...>> : option_of_kind<option_kind::over_experts> {
  static constexpr void apply(layer_options& o) {
    o.routes.is_over = true;
    name_axes<Axes...>(o, o.routes.over);
  }
};
template <>
struct option<sigmoid_gates> : option_of_kind<option_kind::gates> {
  static constexpr void apply(layer_options& o) { o.routes.sigmoid = true; }
};
template <>
struct option<normalised_gates> : option_of_kind<option_kind::normalised> {
  static constexpr void apply(layer_options& o) { o.routes.normalised = true; }
};
template <>
struct option<drop_by_score> : option_of_kind<option_kind::by_score> {
  static constexpr void apply(layer_options& o) { o.routes.by_score = true; }
};
template <index_t Numerator, index_t Denominator>
struct option<noise<Numerator, Denominator>> : option_of_kind<option_kind::noise> {
  static constexpr void apply(layer_options& o) { o.routes.noise = fraction(Numerator, Denominator, o.weights.why); }
};
template <index_t Numerator, index_t Denominator>
struct option<balanced_by_bias<Numerator, Denominator>> : option_of_kind<option_kind::rate> {
  static constexpr void apply(layer_options& o) { o.routes.rate = fraction(Numerator, Denominator, o.weights.why); }
};

/// Whether one of the options is of a kind.
template <option_kind Kind, class... Options>
constexpr bool has_option() {
  return (false || ... || (option<Options>::is == Kind));
}

}  // namespace detail

}  // namespace tessera
