#pragma once

#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <type_traits>

namespace tessera::detail {

/// FNV-1a of bytes, one after the other: what files were summed by before.
class fnv1a64 {
 public:
  static constexpr const char* name = "fnv1a64";

  void add(const void* from, std::uint64_t n) {
    const auto* byte = static_cast<const unsigned char*>(from);
    for (std::uint64_t i = 0; i < n; ++i) value_ = (value_ ^ byte[i]) * 1099511628211u;
  }
  std::string text() const { return fmt::format("{:016x}", value_); }

 private:
  std::uint64_t value_ = 14695981039346656037u;
};

/// XXH64 (Collet 2014) of bytes that come in any pieces: four chains of eight bytes side by side, so that a processor
/// multiplies without waiting.
class xxh64 {
 public:
  static constexpr const char* name = "xxh64";

  void add(const void* from, std::uint64_t n) {
    if (n == 0) return;
    const auto* at = static_cast<const unsigned char*>(from);
    count_ += n;
    if (buffered_ > 0) {
      const std::uint64_t more = std::min<std::uint64_t>(n, sizeof rest_ - buffered_);
      std::memcpy(rest_ + buffered_, at, more);
      buffered_ += more;
      at += more;
      n -= more;
      if (buffered_ < sizeof rest_) return;
      add_block(rest_);
    }
    for (; n >= sizeof rest_; n -= sizeof rest_, at += sizeof rest_) add_block(at);
    std::memcpy(rest_, at, n);
    buffered_ = n;
  }
  void add(const std::string& text) { add(text.data(), text.size()); }

  std::uint64_t value() const {
    std::uint64_t h = fifth;
    if (count_ >= sizeof rest_) {
      h = std::rotl(sums_[0], 1) + std::rotl(sums_[1], 7) + std::rotl(sums_[2], 12) + std::rotl(sums_[3], 18);
      for (const std::uint64_t s : sums_) h = (h ^ mixed_in(0, s)) * first + fourth;
    }
    h += count_;
    const unsigned char* at = rest_;
    std::uint64_t left = buffered_;
    for (; left >= 8; left -= 8, at += 8) h = std::rotl(h ^ mixed_in(0, word<std::uint64_t>(at)), 27) * first + fourth;
    if (left >= 4) {
      h = std::rotl(h ^ word<std::uint32_t>(at) * first, 23) * second + third;
      left -= 4;
      at += 4;
    }
    for (; left > 0; --left, ++at) h = std::rotl(h ^ *at * fifth, 11) * first;
    h = (h ^ (h >> 33)) * second;
    h = (h ^ (h >> 29)) * third;
    return h ^ (h >> 32);
  }
  std::string text() const { return fmt::format("{:016x}", value()); }

 private:
  static constexpr std::uint64_t first = 0x9e3779b185ebca87u, second = 0xc2b2ae3d27d4eb4fu, third = 0x165667b19e3779f9u,
                                 fourth = 0x85ebca77c2b2ae63u, fifth = 0x27d4eb2f165667c5u;

  template <class Word>
  static std::uint64_t word(const unsigned char* at) {
    Word w;
    std::memcpy(&w, at, sizeof w);
    return w;
  }
  static std::uint64_t mixed_in(std::uint64_t sum, std::uint64_t w) { return std::rotl(sum + w * second, 31) * first; }
  void add_block(const unsigned char* at) {
    for (std::size_t i = 0; i < 4; ++i) sums_[i] = mixed_in(sums_[i], word<std::uint64_t>(at + 8 * i));
    buffered_ = 0;
  }

  std::uint64_t sums_[4]{first + second, second, 0, std::uint64_t{0} - first};
  std::uint64_t count_ = 0;
  unsigned char rest_[32]{};
  std::uint64_t buffered_ = 0;  // of the rest
};

/// The sums that a file names, of those that there are.
class file_sums {
 public:
  static constexpr const char* names[]{fnv1a64::name, xxh64::name};

  file_sums() = default;
  /// has(name) says which.
  template <class Has>
  explicit file_sums(Has&& has) {
    if (has(fnv1a64::name)) old_.emplace();
    if (has(xxh64::name)) now_.emplace();
  }

  bool empty() const { return !old_ && !now_; }
  void add(const void* from, std::uint64_t n) {
    if (old_) old_->add(from, n);
    if (now_) now_->add(from, n);
  }
  void add(const std::string& text) { add(text.data(), text.size()); }

  /// Calls visit(name, sum).
  template <class Visit>
  void each(Visit&& visit) const {
    if (old_) visit(fnv1a64::name, old_->text());
    if (now_) visit(xxh64::name, now_->text());
  }

 private:
  std::optional<fnv1a64> old_;
  std::optional<xxh64> now_;
};

}  // namespace tessera::detail
