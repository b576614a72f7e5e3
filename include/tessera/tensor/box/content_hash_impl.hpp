#pragma once

#include <tessera/tensor/box/content_hash.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstring>

namespace tessera::detail {

/// A hash of bytes that come one block after the other: four lanes of words, so that none waits for the one before.
class block_hash {
 public:
  static constexpr std::size_t block = 4096;  // bytes; every one but the last has as many

  void add(const std::byte* bytes, std::size_t n) {
    for (; n >= sizeof lanes_; n -= sizeof lanes_, bytes += sizeof lanes_) mix(bytes);
    if (n == 0) return;
    std::array<std::byte, sizeof lanes_> rest{};
    std::copy_n(bytes, n, rest.begin());
    mix(rest.data());
  }
  std::uint64_t value() const {
    std::uint64_t h = 0;
    for (const std::uint64_t lane : lanes_) h = step(h, lane);
    return h;
  }

 private:
  static std::uint64_t step(std::uint64_t h, std::uint64_t word) {
    return std::rotl(h ^ word, 31) * 0x9e3779b97f4a7c15u;
  }

  void mix(const std::byte* bytes) {
    std::array<std::uint64_t, 4> words;
    std::memcpy(words.data(), bytes, sizeof words);
    for (std::size_t i = 0; i < words.size(); ++i) lanes_[i] = step(lanes_[i], words[i]);
  }

  std::array<std::uint64_t, 4> lanes_{1, 2, 3, 4};
};

TESSERA_INLINE std::uint64_t content_hash(const at::Tensor& x) {
  const at::Tensor here = as_stored(x.detach()).cpu();
  block_hash hash;
  const auto* const first = static_cast<const std::byte*>(here.numel() == 0 ? nullptr : here.const_data_ptr());
  if (here.is_contiguous()) {
    hash.add(first, here.nbytes());
    return hash.value();
  }
  std::array<std::byte, block_hash::block> gathered;
  std::size_t full = 0;
  const auto size = static_cast<std::size_t>(here.element_size());
  std::vector<std::int64_t> at(static_cast<std::size_t>(here.dim()));
  const std::byte* element = first;
  for (std::int64_t left = here.numel(); left > 0; --left) {
    std::copy_n(element, size, &gathered[full]);
    full += size;
    if (full == gathered.size()) hash.add(gathered.data(), std::exchange(full, 0));
    for (std::int64_t d = here.dim() - 1; d >= 0; --d) {
      const std::ptrdiff_t stride = here.stride(d) * static_cast<std::ptrdiff_t>(size);
      element += stride;
      if (++at[static_cast<std::size_t>(d)] < here.size(d)) break;
      element -= stride * here.size(d);
      at[static_cast<std::size_t>(d)] = 0;
    }
  }
  hash.add(gathered.data(), full);
  return hash.value();
}

}  // namespace tessera::detail
