#pragma once

#include <tessera/meta/integer.hpp>

namespace tessera {

/// What a plan moves, in elements and messages; what a worker takes from itself counts for neither.
struct cost {
  index_t total = 0;             ///< elements received by all workers
  index_t busiest = 0;           ///< elements received by the worker that receives most
  index_t lower_bound = 0;       ///< total of what workers need and do not hold (of a Fold the mirror)
  index_t messages = 0;          ///< of all workers
  index_t busiest_messages = 0;  ///< received by the worker that receives most messages

  constexpr cost& operator+=(const cost& other) {
    total += other.total;
    busiest += other.busiest;
    lower_bound += other.lower_bound;
    messages += other.messages;
    busiest_messages += other.busiest_messages;
    return *this;
  }
  friend constexpr bool operator==(const cost&, const cost&) = default;
};

}  // namespace tessera
