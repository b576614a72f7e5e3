#pragma once

#include <tessera/generated/plan.hpp>

namespace tessera {

/// The cost of a plan, in elements and messages; a worker's own box counts for neither. A figure that is the largest
/// index stands for more than can be counted, which `check` refuses.
struct cost {
  index_t total = 0;             ///< elements received by all workers
  index_t busiest = 0;           ///< elements received by the worker that receives most
  index_t lower_bound = 0;       ///< total of what workers need and do not hold (of a Fold the mirror)
  index_t messages = 0;          ///< of all workers
  index_t busiest_messages = 0;  ///< received by the worker that receives most messages

  constexpr cost& operator+=(const cost& other) {
    total = detail::capped_sum(total, other.total);
    busiest = detail::capped_sum(busiest, other.busiest);
    lower_bound = detail::capped_sum(lower_bound, other.lower_bound);
    messages = detail::capped_sum(messages, other.messages);
    busiest_messages = detail::capped_sum(busiest_messages, other.busiest_messages);
    return *this;
  }
  /// The same messages, each of so many times the elements.
  friend constexpr cost operator*(cost c, index_t times) {
    c.total = detail::capped_product(c.total, times);
    c.busiest = detail::capped_product(c.busiest, times);
    c.lower_bound = detail::capped_product(c.lower_bound, times);
    return c;
  }
  friend constexpr bool operator==(const cost&, const cost&) = default;
};

namespace engine {

/// Refuses a cost that cannot be counted in 64 bits.
constexpr refusal check(const cost& c) {
  return c.total < INT64_MAX && c.lower_bound < INT64_MAX && c.messages < INT64_MAX ? refusal{}
                                                                                    : refusal{code::cost_overflows};
}

}  // namespace engine

namespace detail {

// A figure that can be counted.
template <class Figure>
constexpr Figure within_count(const Figure& all) {
  if (!check(all).ok()) stop(check(all));  // [tessera.cost.overflow] more moves or is computed than can be counted
  return all;
}

}  // namespace detail

}  // namespace tessera
