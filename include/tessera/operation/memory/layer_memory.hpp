#pragma once

#include <tessera/operation/memory/attention_memory.hpp>
#include <tessera/operation/memory/window_memory.hpp>
#include <tessera/operation/plan/bundles.hpp>
#include <tessera/operation/plan/exchange_traffic.hpp>

namespace tessera::detail {

// What is in flight of a stream, and in its backward. Of what comes they are two chunks, one that its owner copies, and
// one that the step does. Of what goes they are the one that is made, the one that leaves and the one that arrives.
// Half types are multiplied and added in float.
constexpr void add_stream(const layer_plan& p, int i, index_t& there, index_t& back) {
  const streamed_parts& s = p.streams(i);
  const layout& cut = s.goes ? p.to(i) : p.from(i);
  const element e = p.exchanged_element(i), wide = is_half(e) ? element::float32 : e;
  const engine::stream_count n = engine::stream_count_of(p, i);
  const index_t copied = s.copies ? smaller(parts(cut, s.dim).largest(), engine::rows_of_stream(p)) : 0;
  const index_t comes = capped_product(n.two + n.copied + copied, bytes_of_row(cut, s.dim, e));
  const index_t goes = capped_product(n.two + n.largest, bytes_of_row(cut, s.dim, wide));
  index_t added = 0;
  for (int o = 0; o < p.inputs() && wide != e; ++o) added = capped_sum(added, bytes_held(p.given(o), wide));
  if (wide != e) added = capped_sum(added, bytes_held(p.raw(), wide));
  there = capped_sum(there, capped_sum(added, s.goes ? goes : comes));
  back = capped_sum(back, capped_sum(capped_product(2, added), s.goes ? comes : capped_sum(comes, goes)));
}

// The memory of what comes of a parameter to a local operation that takes it in the element of its operand. What moves
// is rounded before and is of its own element again behind.
constexpr change_memory memory_of_parameter(const layout& from, const layout& to, element own, element comes,
                                            element taken) {
  change_memory w = memory_of(from, to, own);
  const index_t came = w.behind;
  index_t most = w.fresh ? capped_sum(came, w.between) : 0;
  if (comes != own && w.fresh) {
    const index_t sent = bytes_held(from, comes), moved = bytes_held(to, comes);
    most =
        larger(capped_sum(capped_sum(sent, moved), between(change_between(from, to), comes)), capped_sum(moved, came));
  }
  if (taken == own) {
    w.between = larger(0, most - came);
    return w;
  }
  w.behind = bytes_held(to, taken);
  w.between = larger(0, larger(most, w.fresh ? capped_sum(came, w.behind) : w.behind) - w.behind);
  // its gradient is converted, and then comes back
  const index_t back = capped_sum(w.changes ? capped_sum(w.before, w.returning) : 0, came);
  w.returning = larger(0, larger(came, back - w.behind) - w.before);
  w.fresh = w.changes = true;
  return w;
}

/// The memory of a layer whose operands have these elements.
constexpr layer_memory memory_of(const layer_plan& p, const operand_elements& e) {
  layer_memory m;
  m.saves = p.saves;
  for (int i = 0; i < p.inputs(); ++i) m.operands.push(memory_of(p.given(i), p.used(i), e[i]));
  for (int i = 0; i < p.outputs(); ++i) {
    const element of = p.element_of(i, e[0]), travels = p.travels_in(i, e[0]);
    m.results.push(memory_of(p.raw(i), p.output(i), travels));
    if (travels != of) {  // rounded behind
      change_memory& y = m.results[i];
      y.between = capped_sum(y.between, y.behind);
      y.returning = capped_sum(y.returning, y.behind);
      y.behind = bytes_held(p.output(i), of);
    }
    m.differentiable = m.differentiable || has_cotangent(of);
  }
  for (int i = 0; i < p.parameters(); ++i) {
    const element of = p.parameter_element(i, e[0]);
    const index_t stored = bytes_held(p.stored(i), of);
    const change_memory gathers = memory_of(p.stored(i), p.weight(i), of);
    const element comes = p.parameter_comes_as(i, e[0]), taken = p.parameter_taken_as(i, e[0]);
    m.parameters.push(memory_of_parameter(p.held(i) ? p.weight(i) : p.stored(i), p.weight(i), of, comes, taken));
    m.parameters[i].released = p.released(i);
    m.parameters[i].frozen = p.frozen(i);
    m.stored = capped_sum(m.stored, stored);
    if (!p.frozen(i)) m.learned = capped_sum(m.learned, stored);
    // What is held and its gradient, but for copies, which are there already.
    if (p.held(i)) m.held = capped_sum(m.held, capped_product(gathers.fresh + !p.frozen(i), gathers.behind));
    if (p.held(i) && !p.frozen(i) && summed_axes(p.stored(i), p.weight(i)) == 0)
      m.travelling = capped_sum(m.travelling, travelling_between(cotangent(p.weight(i)), cotangent(p.stored(i)), of));
  }
  for (int i = 0; i < p.buffers(); ++i)
    m.buffers = capped_sum(m.buffers, bytes_held(p.buffer(i).stored, p.buffer(i).element));
  if (p.outputs() == 0) return m;
  index_t box = m.results[0].before;  // the largest of those in which it computes
  index_t coming = 0;                 // of streams: what is in flight, and what their backward has besides
  index_t coming_back = 0;
  for (int i = 0; i < p.exchanges(); ++i) {
    if (p.streams(i).streams()) {
      add_stream(p, i, coming, coming_back);
      m.saves.passes = 0;
      continue;
    }
    const change_memory x = memory_of(p.from(i), p.to(i), p.exchanged_element(i));
    if (!x.changes) continue;
    index_t& into = p.saves.exchanges && (p.saves.operands != 0 || p.saves.results != 0) ? m.beside : m.scratch;
    into = capped_sum(into, capped_sum(x.before, x.behind));
    box = larger(box, larger(x.before, x.behind));
    m.saves.passes = 0;
  }
  m.returning = capped_sum(m.scratch, capped_product(box, p.saves.returning));
  for (int i = 0; i < p.made(); ++i) {
    using engine::made_for;
    const made_for what = p.made_as(i);
    index_t& into = what == made_for::always     ? m.beside
                    : what == made_for::backward ? m.remembered
                    : what == made_for::now      ? m.scratch
                                                 : m.returning;
    into = capped_sum(into, capped_product(bytes_held(p.made(i), p.made_element(i)), p.made_times(i)));
  }
  m.scratch = capped_sum(m.scratch, capped_product(box, p.saves.scratch));
  m.later = capped_product(m.results[0].before, p.saves.later);
  if (p.saves.adds) {
    change_memory& y = m.results[0];
    if (y.fresh) y.between = larger(y.between, y.behind - y.before);
    else m.scratch = capped_sum(m.scratch, y.behind);
  }
  const attention_memory attends = memory_of_attention(p, e[0]);
  const bool copies = p.saves.copies + p.saves.copies_back > 0;
  const index_t copied = copies ? bytes_held(p.used(), e[0]) : 0;
  const index_t back = capped_sum(attends.back, capped_product(copied, p.saves.copies_back));
  const index_t there = capped_sum(attends.there, capped_product(copied, p.saves.copies));
  m.returning = capped_sum(m.returning, capped_sum(coming_back, back));
  m.scratch = capped_sum(m.scratch, capped_sum(coming, there));
  if (p.saves.spreads) add_given(p, e[0], m);
  else if (!p.saves.windows.empty()) add_windows(p, e[0], m);
  if (p.saves.begins_as_operand) {
    change_memory& x = m.operands[0];
    m.results[0].room = x.behind;
    if (p.saves.spreads && !x.fresh) x.behind = larger(x.behind, m.results[0].before);
  }
  return m;
}

}  // namespace tessera::detail
