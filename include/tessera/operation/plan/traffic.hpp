#pragma once

#include <tessera/plan/all_reduce_cost.hpp>
#include <tessera/topology/element.hpp>

namespace tessera {

namespace engine {

/// The traffic of one direction of a network, in bytes.
struct direction {
  index_t bytes = 0;                 ///< received by all workers
  index_t busiest_worker_bytes = 0;  ///< Σ over exchanges of what their busiest worker receives
  index_t lower_bound_bytes = 0;     ///< Σ over exchanges of what must move at least
  index_t messages = 0;

  constexpr direction& operator+=(const direction& o) {
    bytes = detail::capped_sum(bytes, o.bytes);
    busiest_worker_bytes = detail::capped_sum(busiest_worker_bytes, o.busiest_worker_bytes);
    lower_bound_bytes = detail::capped_sum(lower_bound_bytes, o.lower_bound_bytes);
    messages = detail::capped_sum(messages, o.messages);
    return *this;
  }
  /// Less what was counted in it.
  constexpr direction& operator-=(const direction& o) {
    bytes -= o.bytes;
    busiest_worker_bytes -= o.busiest_worker_bytes;
    lower_bound_bytes -= o.lower_bound_bytes;
    messages -= o.messages;
    return *this;
  }
  friend constexpr bool operator==(const direction&, const direction&) = default;
};

/// The traffic of a layer or a network: activations and parameters in forward, their cotangents in backward. Held
/// parameters count apart, since they do not move once a call. So do those that another stage has stored, which a
/// pipeline brings once a batch.
struct traffic_value {
  direction forward{};
  direction backward{};
  direction gathered{};  ///< of held and tied parameters, once between two reductions of their gradients
  direction reduced{};   ///< of these gradients, once however many calls they are of

  constexpr traffic_value& operator+=(const traffic_value& o) {
    forward += o.forward;
    backward += o.backward;
    gathered += o.gathered;
    reduced += o.reduced;
    return *this;
  }
  constexpr traffic_value& operator-=(const traffic_value& o) {
    forward -= o.forward;
    backward -= o.backward;
    gathered -= o.gathered;
    reduced -= o.reduced;
    return *this;
  }
  /// The same where all that moves forward moves so many times more in backward.
  constexpr traffic_value again(int times) const {
    traffic_value t = *this;
    for (int i = 0; i < times; ++i) t.backward += forward;
    return t;
  }
  friend constexpr bool operator==(const traffic_value&, const traffic_value&) = default;
};

/// Refuses more bytes than can be counted.
constexpr refusal check(const traffic_value& t) {
  for (const direction* d : {&t.forward, &t.backward, &t.gathered, &t.reduced})
    if (d->bytes == INT64_MAX || d->lower_bound_bytes == INT64_MAX || d->messages == INT64_MAX)
      return refusal{code::cost_overflows};
  return {};
}

/// A cost of elements in bytes; what cannot be counted stays the largest number.
constexpr direction in_bytes(const cost& c, element e) {
  const auto bytes = [e](index_t elements) { return detail::capped_product(elements, bytes_of(e)); };
  return {bytes(c.total), bytes(c.busiest), bytes(c.lower_bound), c.messages};
}

/// The traffic of a change of layout and of its adjoint.
constexpr traffic_value traffic_of(const layout& from, const layout& to, element e) {
  if (&from == &to) return {};
  traffic_value t;
  t.forward = in_bytes(cost_between(from, to), e);
  if (has_cotangent(e) && only_sums(from) && only_sums(to))
    t.backward = in_bytes(cost_between(cotangent(to), cotangent(from)), e);
  return t;
}

}  // namespace engine

}  // namespace tessera
