#pragma once

#include <cstdint>

namespace tessera::engine {

/// What an option speaks of.
enum class topic : unsigned char {
  nothing,
  kernel,
  stride,
  padding,
  padding_mode,
  dilation,
  groups,
  ceil_mode,
  exclude_padding,
  divisor,
  bias,
  cut_out,
  cut_in,
  output,
  eps,
  momentum,
  affine,
  tracking,
  over_last,
  factor,
  probability,
  channelwise,
  weights,
  causal,
  padding_idx,
  padding_rule,
  output_padding,
  interpolation,
  corners,
  antialias,
  max_norm,
  norm_type,
  by_frequency,
  frozen,
  sparse,
  alpha,
  lower,
  upper,
  terms
};

/// The options that a layer takes, by topic.
struct option_set {
  std::uint64_t topics;

  template <class... Topics>
  constexpr explicit option_set(Topics... taken) : topics((std::uint64_t{0} | ... | bit(taken))) {}

  static constexpr std::uint64_t bit(topic t) { return std::uint64_t{1} << static_cast<unsigned>(t); }
  constexpr bool takes(topic t) const { return (topics & bit(t)) != 0; }
};

}  // namespace tessera::engine
