// No include guard: each_machine.ipp includes this once for each set of instructions.

/// As many words as one instruction takes.
typedef std::uint64_t words __attribute__((vector_size(lane_bytes)));
inline constexpr index_t word_count = lane_bytes / 8;

/// The number of each word, from 0 to 2^64: splitmix64 (Steele, Lea and Flood 2014).
template <class Word>
constexpr Word mixed(Word z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

// Where words begin whose l-th is of the element `apart` · l behind the first.
inline words begun(std::uint64_t at, std::uint64_t apart) {
  words all{};
  for (index_t l = 0; l < word_count; ++l) all[l] = at + static_cast<std::uint64_t>(l) * apart * step_of_draws;
  return all;
}

/// Whether the numbers of n neighbours, the first at this place of a stream, are below so many of 2^53.
inline void below(bool* to, index_t n, std::uint64_t at, std::uint64_t share) {
  typedef std::int64_t compared __attribute__((vector_size(lane_bytes)));
  constexpr index_t block = 8 * word_count;
  index_t i = 0;
  if constexpr (std::endian::native == std::endian::little) {
    words first = begun(at, 8);
    for (; i + block <= n; i += block, first += static_cast<std::uint64_t>(block) * step_of_draws) {
      words bytes{};  // byte k of word l is of the element 8 l + k
      for (unsigned k = 0; k < 8; ++k) {
        const words z = mixed(first + k * step_of_draws) >> 11;
        bytes |= reinterpret_cast<words>(reinterpret_cast<compared>(z) < static_cast<std::int64_t>(share)) &
                 (std::uint64_t{1} << 8 * k);
      }
      std::memcpy(to + i, &bytes, sizeof bytes);
    }
  }
  for (; i < n; ++i) to[i] = mixed(at + static_cast<std::uint64_t>(i) * step_of_draws) >> 11 < share;
}

/// The numbers of n neighbours, in [0, 1).
inline void uniform(double* to, index_t n, std::uint64_t at) {
  typedef double lane __attribute__((vector_size(lane_bytes)));
  index_t i = 0;
  words now = begun(at, 1);
  for (; i + word_count <= n; i += word_count, now += static_cast<std::uint64_t>(word_count) * step_of_draws) {
    const words z = mixed(now) >> 11;
    // No instruction converts 64 bits, so each half becomes the lowest digits of a large number.
    const lane high = reinterpret_cast<lane>((z >> 32) | 0x4530000000000000u) - (0x1p84 + 0x1p52);
    const lane low = reinterpret_cast<lane>((z & 0xffffffffu) | 0x4330000000000000u);
    const lane u = (high + low) * 0x1p-53;
    std::memcpy(to + i, &u, sizeof u);
  }
  for (; i < n; ++i)
    to[i] = static_cast<double>(mixed(at + static_cast<std::uint64_t>(i) * step_of_draws) >> 11) * 0x1p-53;
}
