#pragma once

#include <tessera/plan/refusals.hpp>

#include <initializer_list>

namespace tessera::engine {

/// The arithmetic of one direction of a layer or a network. Products are counted in multiply-adds.
struct operations {
  index_t total = 0;           ///< multiply-adds of all workers
  index_t busiest_worker = 0;  ///< Σ over layers of the multiply-adds of the worker that makes most
  index_t elements = 0;        ///< the same of elements, of layers without products: one operation for each

  constexpr operations& operator+=(const operations& o) {
    total = detail::capped_sum(total, o.total);
    busiest_worker = detail::capped_sum(busiest_worker, o.busiest_worker);
    elements = detail::capped_sum(elements, o.elements);
    return *this;
  }
  constexpr operations operator*(index_t times) const {
    return {detail::capped_product(total, times), detail::capped_product(busiest_worker, times),
            detail::capped_product(elements, times)};
  }
  friend constexpr bool operator==(const operations&, const operations&) = default;
};

/// The arithmetic of a layer or a network, forward and backward. Backward makes the gradients of all operands and
/// parameters, and what is computed again for them.
struct arithmetic_value {
  operations forward{};
  operations backward{};

  constexpr arithmetic_value& operator+=(const arithmetic_value& o) {
    forward += o.forward;
    backward += o.backward;
    return *this;
  }
  /// The same where all that is computed forward is computed so many times more in backward.
  constexpr arithmetic_value again(int times) const {
    arithmetic_value all = *this;
    all.backward += forward * times;
    return all;
  }
  /// What the busiest worker computes both ways: the measure of its time.
  constexpr index_t of_a_worker() const {
    const index_t products = detail::capped_sum(forward.busiest_worker, backward.busiest_worker);
    return detail::capped_sum(products, detail::capped_sum(forward.elements, backward.elements));
  }
  friend constexpr bool operator==(const arithmetic_value&, const arithmetic_value&) = default;
};

/// Refuses more operations than can be counted.
constexpr refusal check(const arithmetic_value& a) {
  for (const operations* o : {&a.forward, &a.backward})
    if (o->total == INT64_MAX || o->busiest_worker == INT64_MAX || o->elements == INT64_MAX)
      return refusal{code::cost_overflows};
  return {};
}

}  // namespace tessera::engine
