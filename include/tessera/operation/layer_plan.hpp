#pragma once

#include <tessera/operation/infer.hpp>
#include <tessera/operation/initial_value.hpp>
#include <tessera/plan/all_reduce_cost.hpp>
#include <tessera/topology/tensor_type.hpp>

namespace tessera {

/// Where one parameter of a layer lives and how the layer sees it.
struct parameter_value {
  const char* name = nullptr;
  layout stored;  ///< what the optimizer steps and the state dict saves
  layout used;    ///< what the layer's local operation takes
  initial_value initial;  ///< with the fans of the serial layer: initial values do not depend on the partition
};

/// A layer as what it is, a composition: (raw → output) ∘ local operation ∘ (input → used), and its parameters.
///
/// It is computed by one ordinary function of the input's value, for the compiler and for run time alike.
struct layer_plan {
  layout input;
  layout used;    ///< what the local operation takes
  layout raw;     ///< what it gives
  layout output;  ///< the layer's result
  static_vector<parameter_value, 4> parameters = no_items<parameter_value, 4>;
  refusal why;
};

/// The plan of a layer that is refused.
constexpr layer_plan refused_layer(const refusal& why) {
  layer_plan p;
  p.why = why;
  return p;
}

/// What one direction of a network moves, in bytes.
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
  friend constexpr bool operator==(const direction&, const direction&) = default;
};

/// What a layer or a network moves: activations and parameters on the way there, their cotangents on the way back.
struct traffic_value {
  direction forward;
  direction backward;

  constexpr traffic_value& operator+=(const traffic_value& o) {
    forward += o.forward;
    backward += o.backward;
    return *this;
  }
  friend constexpr bool operator==(const traffic_value&, const traffic_value&) = default;
};

/// Refuses more bytes than can be counted.
constexpr refusal check(const traffic_value& t) {
  for (const direction* d : {&t.forward, &t.backward})
    if (d->bytes == INT64_MAX || d->lower_bound_bytes == INT64_MAX || d->messages == INT64_MAX) return refusal{code::cost_overflows};
  return {};
}

constexpr direction in_bytes(const cost& c, element e) {
  const auto bytes = [e](index_t elements) { return detail::capped_product(elements, bytes_of(e)); };
  return {bytes(c.total), bytes(c.busiest), bytes(c.lower_bound), c.messages};
}

/// The traffic of a change of layout and of its adjoint.
constexpr traffic_value traffic_of(const layout& from, const layout& to, element e) {
  if (same(from, to)) return {};
  traffic_value t;
  t.forward = in_bytes(cost_between(from, to), e);
  if (has_cotangent(e)) t.backward = in_bytes(cost_between(cotangent(to), cotangent(from)), e);
  return t;
}

/// The traffic of a layer.
constexpr traffic_value traffic_of(const layer_plan& p, element e) {
  traffic_value t = traffic_of(p.input, p.used, e);
  t += traffic_of(p.raw, p.output, e);
  for (const parameter_value& w : p.parameters) t += traffic_of(w.stored, w.used, e);
  return t;
}

namespace detail {

/// Lets every cut dimension with a window hold what its outputs need; one that holds a wider halo keeps it.
constexpr refusal hold_windows(layout& x, int first, const sliding* kernels, int count) {
  for (int i = 0; i < count; ++i) {
    const int d = first + i;
    dimension& dim = x.dims[d];
    if (const refusal r = kernels[i].check(d, dim.extent); !r.ok()) return r;
    if (x.levels(d) == 0 || serves(dim, kernels[i])) continue;
    if (!dim.tiles()) return refusal{code::window_without_halo, 0, d};
    if (dim.bounds == learned) return refusal{code::lengths_not_known, d};
    dim.kind = cover::haloed;
    dim.balance(1);
    dim.outputs = kernels[i].outputs(dim.extent);
    dim.needs = kernels[i].needs();
  }
  return {};
}

/// The plan of a layer that is one local operation on `x` and other operands: nothing is exchanged, what comes out is its result.
constexpr layer_plan one_operation(const layout& x, const signature& what, const static_vector<operand, 4>& operands) {
  const inferred y = infer(what, operands);
  layer_plan p;
  p.input = p.used = x;
  p.raw = p.output = y.layout;
  p.why = y.why;
  return p;
}

/// Stored forms are invariant wherever they are not cut or on one coordinate: every worker that holds a copy steps it alike.
constexpr layout stored_form(layout used) {
  for (int a = 0; a < used.roles.count; ++a)
    if (used.roles[a].kind == role::replicate || used.roles[a].kind == role::partial) used.roles[a] = {role::invariant};
  return used;
}

}  // namespace detail
}  // namespace tessera
