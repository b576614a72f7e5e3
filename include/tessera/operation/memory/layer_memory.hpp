#pragma once

#include <tessera/operation/memory/attention_memory.hpp>
#include <tessera/operation/memory/bytes_held.hpp>
#include <tessera/operation/plan/bundles.hpp>
#include <tessera/operation/plan/exchange_traffic.hpp>
#include <tessera/operation/window/halo_split.hpp>
#include <tessera/operation/window/transposed_crop.hpp>
#include <tessera/plan/phase.hpp>

namespace tessera::detail {

/// The memory of a worker for a change of layout.
struct change_memory {
  index_t before = 0;     ///< the box that it begins with
  index_t behind = 0;     ///< the box that it ends with
  index_t between = 0;    ///< of what lies between exchanges, as far as it adds to both
  index_t returning = 0;  ///< the same of its adjoint
  index_t whole = 0;      ///< what it begins with is a view of so much, to which its gradient is padded
  index_t padding = 0;    ///< what lies between on the way there
  bool changes = false;   ///< it is a node of autograd's graph, whose gradient is a box of its own
  bool fresh = false;     ///< what it ends with is no view of what it begins with
  bool frozen = false;    ///< nothing comes back
  bool released = false;  ///< what it ends with goes behind forward and is made again for backward
};

// The most that the boxes between exchanges add to the last: each lies beside the one before it.
constexpr index_t between(const change& c, element e) {
  const phases all = tessera::phases_of(c);
  index_t most = 0;
  for (int i = 0; i + 1 < all.count; ++i) {
    const index_t next = i + 2 < all.count ? bytes_held(all[i + 1].to(), e) : 0;
    most = larger(most, capped_sum(bytes_held(all[i].to(), e), next));
  }
  return most;
}

constexpr change_memory memory_of(const layout& from, const layout& to, element e) {
  change_memory m;
  m.before = bytes_held(from, e);
  m.behind = bytes_held(to, e);
  const change there = change_between(from, to);
  m.changes = !there.steps.empty();
  m.fresh = !stays(there);
  if (!m.changes) return m;
  m.between = between(there, e);
  if (has_cotangent(e)) m.returning = between(change_between(cotangent(to), cotangent(from)), e);
  return m;
}

/// What a worker takes for a change between its begin and its end, beside both boxes. It is what lies between
/// exchanges, and the number that stands for the end.
constexpr index_t travelling_between(const layout& from, const layout& to, element e) {
  const change c = change_between(from, to);
  return stays(c) ? 0 : capped_sum(between(c, e), index_t{sizeof(double)});
}

/// The memory of a worker for a layer, in bytes.
struct layer_memory {
  static_vector<change_memory, 4> operands;
  static_vector<change_memory, 4> results;
  static_vector<change_memory, 8> parameters;
  index_t stored = 0;      ///< by its parameters
  index_t learned = 0;     ///< by those of them that have gradients
  index_t held = 0;        ///< by what is gathered of them and held, with its gradient
  index_t travelling = 0;  ///< by gradients of these on their way, which do not share bundles
  index_t buffers = 0;
  index_t beside = 0;           ///< what its operation makes besides its results, and keeps
  index_t remembered = 0;       ///< what it makes on its way to them, and keeps for its backward alone
  index_t scratch = 0;          ///< what it takes while it runs
  index_t returning = 0;        ///< what its backward does
  bool differentiable = false;  ///< its result has a gradient
  saved_tensors saves;
};

// The memory of a padded box of which only the edges are filled, and the part of it that is kept. Zero unless some
// worker reads its windows in parts and none reads a padded box as a whole.
struct edge_memory {
  index_t padded = 0;
  index_t kept = 0;
};
constexpr edge_memory edges_of(const layer_plan& p, element e) {
  const layout &given = p.given(), &used = p.used();
  const int first = used.dims.count - p.saves.windows.count;
  if (!brings_a_halo(given, used)) return {};
  edge_memory m{bytes_held(used, e), 0};
  double share = 0;
  for (int d = 0; d < used.dims.count; ++d) {
    const parts own(given, d), held(used, d), made(p.raw(), d);
    for (int k = 0; d < first && k < held.count(); ++k)
      if (own.count() != held.count() || !(own.held(k) == held.held(k))) return {};
    index_t most = 0;
    double most_of = 0;
    for (int k = 0; d >= first && k < made.count(); ++k) {
      const intervals part = own.held(k), all = held.held(k), outputs = made.held(k);
      if (size_of(part) == 0 || size_of(outputs) == 0 || part.count != 1 || all.count != 1) return {};
      const sliding& window = p.saves.windows[d - first];
      const halo_split at = p.saves.spreads ? adding_of(window, part[0], all[0], outputs[0])
                                            : halo_split_of(window, part[0], all[0], outputs[0], p.saves.pads);
      if (!at.serves) return {};
      index_t reads = 0, gives = 0;
      for (const halo_split::edge& one : at.edges) {
        reads += one.reads.size();
        gives += one.outputs.size();
      }
      most = larger(most, reads);
      const double here = static_cast<double>(gives) / static_cast<double>(size_of(outputs));
      most_of = here > most_of ? here : most_of;
    }
    share += most_of;
    if (most > 0) m.kept = capped_sum(m.kept, m.padded / held.largest() * most);
  }
  return share <= most_edges ? m : edge_memory{};
}

// How much an operand grows where it is read as a padded box, and the windows of it that are copied out.
constexpr void add_windows(const layer_plan& p, element e, layer_memory& m) {
  const layout& used = p.used();
  const layout& raw = p.raw();
  const int first = used.dims.count - p.saves.windows.count;
  bool framed = false;
  index_t read = bytes_of(e);
  index_t copied = bytes_of(e);
  for (int d = 0; d < used.dims.count; ++d) {
    const parts held(used, d);
    const parts given(raw, d);
    index_t most = held.largest();
    copied = capped_product(copied, d >= first       ? given.largest()
                                    : d == first - 1 ? smaller(most, p.saves.columns)
                                                     : most);
    if (d >= first) {
      const sliding& s = p.saves.windows[d - first];
      copied = capped_product(copied, s.kernel);
      for (int k = 0; k < given.count() && held.count() == given.count(); ++k) {
        const interval outputs = given.held(k)[0];
        const intervals has = held.held(k);
        if (outputs.empty() || size_of(has) == 0) continue;
        const padding_plan f = padding_plan_of(s, has[0], outputs, p.saves.pads);
        const index_t wanted = s.edge == boundary::zero ? f.before + has[0].size() + f.behind
                                                        : (outputs.size() - 1) * s.stride + s.reach();
        framed = framed || wanted > size_of(has);
        most = larger(most, wanted);
      }
    }
    read = capped_product(read, most);
  }
  const edge_memory edges = edges_of(p, e);
  if (edges.padded > 0) {
    m.operands[0].fresh = false;
    m.remembered = capped_sum(m.remembered, edges.kept);
    m.scratch = capped_sum(m.scratch, larger(read, edges.padded));
  } else if (framed) {
    m.operands[0].behind = read;
    m.operands[0].fresh = true;
  }
  if (p.saves.columns > 0) {
    m.scratch = capped_sum(m.scratch, copied);
    m.returning = capped_sum(m.returning, copied);
  }
  // behind the operation's own backward
  if (edges.padded > 0) m.returning = larger(m.returning, larger(read, edges.padded));
}

// What each input gives under transposed windows, before it is added: LibTorch keeps all samples' forward under one or
// two, else one's.
constexpr void add_given(const layer_plan& p, element e, layer_memory& m) {
  const int first = p.used().dims.count - p.saves.windows.count;
  index_t copied = capped_product(bytes_of(e), p.saves.columns);
  for (int d = first; d < p.used().dims.count; ++d)
    copied = capped_product(copied, capped_product(parts(p.used(), d).largest(), p.saves.windows[d - first].kernel));
  m.returning = capped_sum(m.returning, copied);
  for (int d = 0; d < first - 1 && p.saves.windows.count < 3; ++d)
    copied = capped_product(copied, parts(p.used(), d).largest());
  m.scratch = capped_sum(m.scratch, copied);
  if (const edge_memory edges = edges_of(p, e); edges.padded > 0) {
    m.operands[0].fresh = false;
    m.remembered = capped_sum(m.remembered, edges.kept);
    m.scratch = capped_sum(m.scratch, edges.padded);
    m.returning = larger(m.returning, edges.padded);
    return;
  }
  // The result may be a view of more. Its gradient is padded to that, one dimension after the other, the first one
  // last.
  change_memory& y = m.results[0];
  index_t whole = bytes_of(e);
  index_t padding = bytes_of(e);
  for (int d = 0; d < p.raw().dims.count; ++d) {
    const parts inputs(p.used(), d);
    const parts outputs(p.raw(), d);
    const index_t given = outputs.largest();
    index_t most = given;
    for (int k = 0; d >= first && k < outputs.count(); ++k)
      if (!inputs.held(k)[0].empty() && !outputs.held(k)[0].empty())
        most = larger(
            most, transposed_crop_of(p.saves.windows[d - first], inputs.held(k)[0], outputs.held(k)[0]).made.size());
    padding = capped_product(padding, padding == whole && most > given ? given : most);
    whole = capped_product(whole, most);
  }
  if (whole == y.before) return;
  y.whole = whole;
  y.padding = padding == y.before ? 0 : padding;
}

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
    m.parameters.push(p.held(i) ? memory_of(p.weight(i), p.weight(i), of) : gathers);
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
  index_t coming = 0;  // of streams: what is in flight, and what their backward has besides
  index_t coming_back = 0;
  for (int i = 0; i < p.exchanges(); ++i) {
    if (p.streams(i).streams()) {
      add_stream(p, i, coming, coming_back);
      m.saves.passes = false;
      continue;
    }
    const change_memory x = memory_of(p.from(i), p.to(i), p.exchanged_element(i));
    if (!x.changes) continue;
    index_t& into = p.saves.exchanges && (p.saves.operands != 0 || p.saves.results != 0) ? m.beside : m.scratch;
    into = capped_sum(into, capped_sum(x.before, x.behind));
    m.saves.passes = false;
  }
  for (int i = 0; i < p.made(); ++i) {
    index_t& into = p.made_always(i) ? m.beside : m.remembered;
    into = capped_sum(into, bytes_held(p.made(i), p.made_element(i)));
  }
  m.returning = capped_sum(m.scratch, capped_product(m.results[0].before, p.saves.returning));
  m.scratch = capped_sum(m.scratch, capped_product(m.results[0].before, p.saves.scratch));
  const attention_memory attends = memory_of_attention(p, e[0]);
  const bool copies = p.saves.copies + p.saves.copies_back > 0;
  const index_t copied = copies ? bytes_held(p.used(), e[0]) : 0;
  const index_t back = capped_sum(attends.back, capped_product(copied, p.saves.copies_back));
  const index_t there = capped_sum(attends.there, capped_product(copied, p.saves.copies));
  m.returning = capped_sum(m.returning, capped_sum(coming_back, back));
  m.scratch = capped_sum(m.scratch, capped_sum(coming, there));
  if (p.saves.spreads) add_given(p, e[0], m);
  else if (!p.saves.windows.empty()) add_windows(p, e[0], m);
  return m;
}

}  // namespace tessera::detail
