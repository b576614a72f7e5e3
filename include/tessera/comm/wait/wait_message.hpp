#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace tessera::detail {

/// Words in a message of fixed size; what does not fit is left out.
template <std::size_t Size>
struct words {
  char text[Size]{};

  words& operator=(std::string_view from) {
    std::fill(std::copy_n(from.begin(), std::min(from.size(), Size - 1), text), text + Size, '\0');
    return *this;
  }
  std::string_view view() const { return text; }
};

/// A message between workers beside boxes.
struct wait_message {
  enum kinds : int {
    question,  ///< whether the reader can still begin the call that the sender waits in
    answer,    ///< the sender is alive; to who asked first, also whom it waits for, or whose term it lacks
    never,     ///< the sender ended before it began the call
    hail,      ///< from one that ended: whether the reader is alive
    goodbye,   ///< the sender's program ended
    failure,   ///< all stop with this error
    silent,    ///< the sender stops with another's error, and says nothing itself
    reported   ///< but now it does, since nobody else has
  };
  kinds kind = question;
  int from = 0;   ///< who waits, or says it: another may have sent it on
  int first = 0;  ///< who asked first
  int waits_for = -1;
  bool offered_else = false;   ///< the reader sent the sender a box that none of the sender's calls takes
  bool reads = false;          ///< it is asked about a call that it has to take too, not only to begin
  std::uint64_t asked = 0;     ///< the first one's number for its question
  std::uint64_t exchange = 0;  ///< the id of the one that the sender waits in,
  std::uint64_t sequence = 0;  ///< and which of its calls
  words<192> does;
  /// what it is when the question comes back to who asked: workers that disagree, or a ring
  bool disagreement = false;
  words<1024> error_text;  ///< that error, or a failure
};

}  // namespace tessera::detail
