#pragma once

#include <tessera/operation/layer/read_options.hpp>
#include <tessera/operation/program/layer.hpp>

namespace tessera {

/// The addend to a variance before its root: `eps<1, 1'000>` is 0.001.
template <index_t Numerator, index_t Denominator>
struct eps {};
/// The weight of a call in running statistics: `momentum<1, 10>` is 0.1.
template <index_t Numerator, index_t Denominator>
struct momentum {};
/// Running statistics are means over all calls.
struct cumulative {};
/// A normalisation without weight and bias.
struct no_affine {};
/// An instance normalisation with weight and bias.
struct affine {};
/// A batch normalisation that keeps no running statistics.
struct no_tracking {};
/// An instance normalisation that keeps running statistics.
struct tracking {};
/// Over how many of the last dimensions a layer works.
template <int Count>
struct over_last {};

template <index_t Numerator, index_t Denominator>
inline constexpr kind engine::kind_of<eps<Numerator, Denominator>> = kind::option;
template <index_t Numerator, index_t Denominator>
inline constexpr kind engine::kind_of<momentum<Numerator, Denominator>> = kind::option;
template <>
inline constexpr kind engine::kind_of<cumulative> = kind::option;
template <>
inline constexpr kind engine::kind_of<no_affine> = kind::option;
template <>
inline constexpr kind engine::kind_of<affine> = kind::option;
template <>
inline constexpr kind engine::kind_of<no_tracking> = kind::option;
template <>
inline constexpr kind engine::kind_of<tracking> = kind::option;
template <int Count>
inline constexpr kind engine::kind_of<over_last<Count>> = kind::option;

namespace detail {

template <index_t Numerator, index_t Denominator>
struct option<eps<Numerator, Denominator>> : option_of_kind<option_kind::eps> {
  static constexpr void apply(layer_options& o) {
    o.norm.eps = fraction(Numerator, Denominator, o.weights.why);
    if (o.norm.eps < 0) o.weights.why = first_of(o.weights.why, refusal{code::eps_below_zero});
  }
};
template <index_t Numerator, index_t Denominator>
struct option<momentum<Numerator, Denominator>> : option_of_kind<option_kind::momentum> {
  static constexpr void apply(layer_options& o) { o.norm.momentum = fraction(Numerator, Denominator, o.weights.why); }
};
template <>
struct option<cumulative> : option_of_kind<option_kind::momentum> {
  static constexpr void apply(layer_options& o) { o.norm.cumulative = true; }
};
template <>
struct option<no_affine> : option_of_kind<option_kind::affine> {
  static constexpr void apply(layer_options& o) { o.norm.weight = false; }
};
template <>
struct option<affine> : option_of_kind<option_kind::affine> {
  static constexpr void apply(layer_options& o) { o.norm.weight = true; }
};
template <>
struct option<no_tracking> : option_of_kind<option_kind::tracking> {
  static constexpr void apply(layer_options& o) { o.norm.tracked = false; }
};
template <>
struct option<tracking> : option_of_kind<option_kind::tracking> {
  static constexpr void apply(layer_options& o) { o.norm.tracked = true; }
};
template <int Count>
struct option<over_last<Count>> : option_of_kind<option_kind::over_last> {
  static constexpr void apply(layer_options& o) { o.norm.groups.last = Count; }
};

// What options say to a normalisation that is this unless they speak.
template <class... Options>
constexpr normalisation read_normalisation(const option_kinds& taken, const normalisation& unless_said) {
  layer_options o;
  o.norm = unless_said;
  o = read_options<Options...>(taken, o);
  normalisation n = o.norm;
  n.bias = n.bias && o.weights.bias;
  n.why = o.weights.why;
  return n;
}

}  // namespace detail

namespace nn {

/// Each channel (the second of two to five dimensions) with mean 0 and variance 1, times weight plus bias. Training
/// uses the batch's statistics, of all workers, and keeps running ones, which are used else.
///
/// Options: `eps` (1e-5), `momentum` (0.1) or `cumulative`, `no_affine`, `no_tracking`.
template <class... Options>
struct batch_norm : engine::described_layer<batch_norm<Options...>> {
  static constexpr const char* name = "batch_norm";
  static constexpr engine::option_kinds takes{engine::option_kind::eps, engine::option_kind::momentum,
                                              engine::option_kind::affine, engine::option_kind::tracking};
  static constexpr engine::normalisation description() {
    return tessera::detail::read_normalisation<Options...>(takes, batch_norm_layer{}.description());
  }
};

/// Each of so many ranges of neighbouring channels of each sample with mean 0 and variance 1, times weight plus bias of
/// each channel (Wu and He 2018).
///
/// Options: `eps` (1e-5), `no_affine`.
template <index_t Groups, class... Options>
struct group_norm : engine::described_layer<group_norm<Groups, Options...>> {
  static constexpr const char* name = "group_norm";
  static constexpr engine::option_kinds takes{engine::option_kind::eps, engine::option_kind::affine};
  static constexpr engine::normalisation description() {
    return tessera::detail::read_normalisation<Options...>(takes, group_norm_layer{Groups}.description());
  }
};

/// Each channel of each sample with mean 0 and variance 1. Running statistics, where they are kept, are means over
/// samples.
///
/// Options: `eps` (1e-5), `affine`, `tracking`, `momentum` (0.1) or `cumulative`.
template <class... Options>
struct instance_norm : engine::described_layer<instance_norm<Options...>> {
  static constexpr const char* name = "instance_norm";
  static constexpr engine::option_kinds takes{engine::option_kind::eps, engine::option_kind::momentum,
                                              engine::option_kind::affine, engine::option_kind::tracking};
  static constexpr engine::normalisation description() {
    return tessera::detail::read_normalisation<Options...>(takes, instance_norm_layer{}.description());
  }
};

/// Normalises the elements that share all but the last dimensions to mean 0 and variance 1, times weight plus bias.
///
/// Options: `over_last<k>` (1), `eps` (1e-5), `no_affine`, `no_bias`.
template <class... Options>
struct layer_norm : engine::described_layer<layer_norm<Options...>> {
  static constexpr const char* name = "layer_norm";
  static constexpr engine::option_kinds takes{engine::option_kind::over_last, engine::option_kind::eps,
                                              engine::option_kind::affine, engine::option_kind::bias};
  static constexpr engine::normalisation description() {
    return tessera::detail::read_normalisation<Options...>(takes, layer_norm_layer{}.description());
  }
};

/// x / √(mean x² + eps) · weight over the last dimensions (Zhang and Sennrich 2019).
///
/// Options: `over_last<k>` (1), `eps` (the element's own), `no_affine`.
template <class... Options>
struct rms_norm : engine::described_layer<rms_norm<Options...>> {
  static constexpr const char* name = "rms_norm";
  static constexpr engine::option_kinds takes{engine::option_kind::over_last, engine::option_kind::eps,
                                              engine::option_kind::affine};
  static constexpr engine::normalisation description() {
    return tessera::detail::read_normalisation<Options...>(takes, rms_norm_layer{}.description());
  }
};

}  // namespace nn

template <class... Options>
inline constexpr kind engine::kind_of<nn::batch_norm<Options...>> = kind::layer;
template <index_t Groups, class... Options>
inline constexpr kind engine::kind_of<nn::group_norm<Groups, Options...>> = kind::layer;
template <class... Options>
inline constexpr kind engine::kind_of<nn::instance_norm<Options...>> = kind::layer;
template <class... Options>
inline constexpr kind engine::kind_of<nn::layer_norm<Options...>> = kind::layer;
template <class... Options>
inline constexpr kind engine::kind_of<nn::rms_norm<Options...>> = kind::layer;

}  // namespace tessera
