#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace digits {

/// Mixes 64 bits into 64 others, one to one, each of them depending on all: the finaliser of splitmix64.
constexpr std::uint64_t mix(std::uint64_t bits) {
  bits += 0x9e3779b97f4a7c15ULL;
  bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9ULL;
  bits = (bits ^ (bits >> 27)) * 0x94d049bb133111ebULL;
  return bits ^ (bits >> 31);
}

/// The order in which an epoch visits `count` samples: sorted by a key that depends on (seed, epoch, sample) alone.
///
/// No generator carries state from call to call, so every worker and the serial run shuffle alike, from any epoch on.
inline std::vector<std::int64_t> order(std::uint64_t seed, int epoch, std::int64_t count) {
  const std::uint64_t base = mix(mix(seed) + static_cast<std::uint64_t>(epoch));
  std::vector<std::pair<std::uint64_t, std::int64_t>> keyed;
  keyed.reserve(static_cast<std::size_t>(std::max<std::int64_t>(count, 0)));
  for (std::int64_t sample = 0; sample < count; ++sample)
    keyed.emplace_back(mix(base + static_cast<std::uint64_t>(sample)), sample);
  std::sort(keyed.begin(), keyed.end());
  std::vector<std::int64_t> samples;
  samples.reserve(keyed.size());
  for (const auto& [key, sample] : keyed) samples.push_back(sample);
  return samples;
}

}  // namespace digits
