#pragma once

#include <tessera/meta/call_site.hpp>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace tessera {

/// How often workers compare what they do and what they hold, beside what they bind.
///
///  never    not at all
///  sampled  the 1st, 2nd, 4th, 8th … time that a line of the program does something
///  always   every time
enum class checks : signed char { never, sampled, always };

namespace engine {

/// Whether the nth time, counted from 1, is one that is compared.
constexpr bool compares(checks how, std::uint64_t nth) {
  return how == checks::always || (how == checks::sampled && std::has_single_bit(nth));
}

/// How often each line of a program did something; workers that run one program count alike.
class visits {
 public:
  /// The number of one more visit of a line, from 1.
  std::uint64_t next(const call_site& line) {
    if (last_ < lines_.size() && lines_[last_].is(line)) return ++lines_[last_].count;
    for (last_ = 0; last_ < lines_.size(); ++last_)
      if (lines_[last_].is(line)) return ++lines_[last_].count;
    lines_.push_back({line, 1});
    return 1;
  }

 private:
  struct visited {
    call_site line;
    std::uint64_t count;

    bool is(const call_site& other) const { return line.line == other.line && line.file == other.file; }
  };

  std::vector<visited> lines_;
  std::size_t last_ = 0;
};

}  // namespace engine

}  // namespace tessera
