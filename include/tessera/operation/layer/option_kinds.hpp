#pragma once

#include <cstdint>

namespace tessera::engine {

/// The subject of an option; a layer takes one option of a kind.
enum class option_kind : unsigned char {
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
  added_mask,
  streamed,
  sliding_window,
  over_heads,
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
  terms,
  sample_rate,
  arcface,
  choices,
  capacity,
  over_experts,
  gates,
  normalised,
  by_score,
  noise,
  rate
};

/// The kinds of option that a layer takes.
struct option_kinds {
  std::uint64_t bits;

  template <class... Kinds>
  constexpr explicit option_kinds(Kinds... taken) : bits((std::uint64_t{0} | ... | bit(taken))) {}

  static constexpr std::uint64_t bit(option_kind kind) { return std::uint64_t{1} << static_cast<unsigned>(kind); }
  constexpr bool takes(option_kind kind) const { return (bits & bit(kind)) != 0; }
};

}  // namespace tessera::engine
