#pragma once

#include <tessera/tensor/random.hpp>

namespace tessera::nn::engine {

/// The order of n samples in an epoch: a permutation of [0, n) by (seed, epoch), any place of which is found by itself.
///
/// Nothing is stored of it: it is the same on all workers, on any mesh, and as fast for 10¹² samples as for ten. A
/// Feistel network maps a sample x = right · a + left, a even, a ≥ √n, in 24 rounds. Each round adds to one half a draw
/// keyed by the other: a bijection of [0, a · b) ⊇ [0, n). A value outside [0, n) goes through again until it returns.
/// Fewer rounds leave some permutations of seven samples rarer than others, and two odd halves would give even
/// permutations alone. (J. Black and P. Rogaway, Ciphers with Arbitrary Finite Domains, CT-RSA 2002; R. Mitchell et
/// al., Bandwidth-Optimal Random Shuffling for GPUs, ACM TOPC 2022.)
class shuffled_order {
 public:
  constexpr shuffled_order() = default;
  /// `stream` is the seed's, as `stream_of(seed, name)` gives it.
  constexpr shuffled_order(index_t n, std::uint64_t stream, index_t epoch)
      : n_(static_cast<std::uint64_t>(n)),
        key_(tessera::detail::bits_at(stream, static_cast<std::uint64_t>(epoch))),
        left_(even(root_of(n_))),
        right_(n == 0 ? 0 : (n_ - 1) / left_ + 1) {}

  constexpr index_t size() const { return static_cast<index_t>(n_); }

  /// The sample that stands at a position in [0, n).
  constexpr index_t operator[](index_t position) const {
    auto x = static_cast<std::uint64_t>(position);
    do x = once(x);
    while (x >= n_);
    return static_cast<index_t>(x);
  }

 private:
  static constexpr std::uint64_t rounds = 24;

  constexpr std::uint64_t once(std::uint64_t x) const {
    std::uint64_t left = x % left_, right = x / left_;
    for (std::uint64_t r = 0; r < rounds; r += 2) {
      left = moved(left, left_, right * rounds + r);
      right = moved(right, right_, left * rounds + r + 1);
    }
    return right * left_ + left;
  }

  // x and a number of [0, of) that the generator draws at a place, modulo `of` < 2^32.
  constexpr std::uint64_t moved(std::uint64_t x, std::uint64_t of, std::uint64_t place) const {
    const std::uint64_t sum = x + ((tessera::detail::bits_at(key_, place) >> 32) * of >> 32);
    return sum < of ? sum : sum - of;
  }

  static constexpr std::uint64_t even(std::uint64_t n) { return n + n % 2; }

  // ⌈√n⌉, 1 of nothing.
  static constexpr std::uint64_t root_of(std::uint64_t n) {
    std::uint64_t low = 1, high = std::uint64_t{1} << 32;  // of which one is it
    while (low < high) {
      const std::uint64_t middle = (low + high) / 2;
      if (n == 0 || (n - 1) / middle < middle) high = middle;
      else low = middle + 1;
    }
    return low;
  }

  std::uint64_t n_ = 0;
  std::uint64_t key_ = 0;
  std::uint64_t left_ = 2;   ///< how many values the left half has
  std::uint64_t right_ = 0;  ///< and the right one
};

}  // namespace tessera::nn::engine
