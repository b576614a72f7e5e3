#pragma once

#include <tessera/operation/plan/layer_plan.hpp>

namespace tessera::engine {

/// The elements of a layer's operands.
using operand_elements = static_vector<element, 4>;

/// The traffic of a parameter of a layer. A released parameter is gathered a second time, for backward; a held one
/// moves in no call. Terms of its gradient move in its own element, and so are added in that.
constexpr traffic_value traffic_of_parameter(const layer_plan& p, int i, const operand_elements& e) {
  const element own = p.parameter_element(i, e[0]), comes = p.parameter_comes_as(i, e[0]);
  traffic_value t = traffic_of(p.stored(i), p.weight(i), own);
  if (comes != own) t.forward = traffic_of(p.stored(i), p.weight(i), comes).forward;
  if (p.frozen(i)) t.backward = {};
  if (p.released(i)) t.backward += t.forward;
  if (p.held(i)) return {{}, {}, t.forward, t.backward};
  return t;
}

/// How many indices of a part come or go at once, by the first change of a layer that is streamed.
constexpr index_t rows_of_stream(const layer_plan& p) {
  for (int i = 0; i < p.exchanges(); ++i)
    if (const streamed_parts& s = p.streams(i); s.streams())
      return rows_at_once(s.goes ? p.to(i) : p.from(i), s.dim, p.exchanged_element(i), s.asked);
  return 0;
}

/// A direction of which some rows move, of all, and to the busiest worker.
constexpr direction share_of(direction d, index_t some, index_t all, index_t busiest, index_t busiest_of_all) {
  const auto share = [](index_t n, index_t part, index_t whole) {
    return n == 0 || n == INT64_MAX ? n : n / whole * part;
  };
  d.bytes = share(d.bytes, some, all);
  d.lower_bound_bytes = share(d.lower_bound_bytes, some, all);
  d.busiest_worker_bytes = share(d.busiest_worker_bytes, busiest, busiest_of_all);
  return d;
}

/// What comes along a line of an exchange that is streamed, or goes.
constexpr stream_count stream_count_of(const layer_plan& p, int i) {
  const streamed_parts& s = p.streams(i);
  const parts cut(s.goes ? p.to(i) : p.from(i), s.dim);
  const index_t rows = rows_of_stream(p);
  if (!s.reach.limited()) return read_by_all(cut, rows);
  return reach_count(cut, {cut, p.used(0), s.reach.dim, s.reach.before, s.reach.after}, rows).counted();
}

/// The traffic of an exchange of a layer. What comes in parts comes once more in backward. Terms of half types that go
/// in parts go in float. Where readers take what they reach, it is that share of the whole.
constexpr traffic_value traffic_of_exchange(const layer_plan& p, int i) {
  const element e = p.exchanged_element(i);
  traffic_value t = traffic_of(p.from(i), p.to(i), e);
  if (const streamed_parts& s = p.streams(i); s.streams()) {
    const traffic_value wide = traffic_of(p.from(i), p.to(i), is_half(e) ? element::float32 : e);
    (s.goes ? t.forward : t.backward) = s.goes ? wide.forward : wide.backward;
    const layout& cut = s.goes ? p.to(i) : p.from(i);
    const stream_count n = stream_count_of(p, i);
    const index_t messages = n.chunks * lines_of(cut, s.dim);
    for (direction* d : {&t.forward, &t.backward}) d->messages = d->messages > 0 ? messages : 0;
    if (s.reach.limited()) {
      const stream_count all = read_by_all(parts(cut, s.dim), 1);
      t.forward = share_of(t.forward, n.total, all.total, n.reader, all.reader);
      t.backward = share_of(t.backward, n.total, all.total, n.owner, all.owner);
    }
    if (!s.goes && has_cotangent(e)) t.backward += t.forward;
  }
  if (!p.returns(i)) t.backward = {};
  return t;
}

/// The traffic of a layer.
constexpr traffic_value traffic_of(const layer_plan& p, const operand_elements& e) {
  traffic_value t;
  for (int i = 0; i < p.inputs(); ++i) t += traffic_of(p.given(i), p.used(i), e[i]);
  for (int i = 0; i < p.outputs(); ++i) t += traffic_of(p.raw(i), p.output(i), p.travels_in(i, e[0]));
  for (int i = 0; i < p.exchanges(); ++i) t += traffic_of_exchange(p, i);
  for (int i = 0; i < p.parameters(); ++i) t += traffic_of_parameter(p, i, e);
  return t;
}

}  // namespace tessera::engine
