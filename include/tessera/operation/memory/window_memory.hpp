#pragma once

#include <tessera/operation/memory/change_memory.hpp>
#include <tessera/operation/window/halo_split.hpp>
#include <tessera/operation/window/transposed_crop.hpp>

namespace tessera::detail {

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

// Groups of features on the worker that has most of them. Without dilation LibTorch's convolution of three dimensions
// takes them at once.
constexpr bool groups_at_once(const layer_plan& p) {
  bool dilated = false;
  for (const sliding& s : p.saves.windows) dilated = dilated || s.dilation > 1;
  return p.saves.windows.count == 3 && !p.saves.spreads && !dilated;
}
constexpr index_t groups_here(const layer_plan& p) {
  if (groups_at_once(p)) return 1;
  const int features = p.used().dims.count - p.saves.windows.count - 1;
  const index_t all = features < 0 ? 0 : p.used().dims[features].extent;
  if (p.saves.groups <= 1 || all < 1) return 1;
  return larger(1, p.saves.groups * parts(p.used(), features).largest() / all);
}

/// The boxes through which a worker reads an operand under windows.
struct read_boxes {
  index_t padded = 0;    ///< the operand and what lies around it
  index_t read = 0;      ///< the part of that that is read
  index_t partly = 0;    ///< the same along the first dimension of which it is a part
  index_t copied = 0;    ///< copies of what each output reads, of so many features at a time
  int parts = 0;         ///< dimensions of which it is a part
  index_t before = 0;    ///< what the last of several steps to the padded box begins with
  bool gathers = false;  ///< by copies along dimensions
  bool framed = false;   ///< something lies around it
};
constexpr read_boxes read_boxes_of(const layer_plan& p, element e) {
  const layout &used = p.used(), &raw = p.raw();
  const int first = used.dims.count - p.saves.windows.count;
  read_boxes m;
  m.padded = m.read = m.partly = m.copied = bytes_of(e);
  int steps = 0;                    // zeros are one
  index_t longer = 1, shorter = 1;  // the dimension of the last one
  bool filled = false;
  for (int d = 0; d < used.dims.count; ++d) {
    const parts held(used, d), given(raw, d);
    index_t most = held.largest(), least = most;
    m.copied = capped_product(m.copied, d >= first       ? given.largest()
                                        : d == first - 1 ? smaller(most, groups_at_once(p) ? most : p.saves.columns)
                                                         : most);
    if (d >= first) {
      const sliding& s = p.saves.windows[d - first];
      m.copied = capped_product(m.copied, s.kernel);
      index_t read = 0;
      bool gathers = false;
      for (int k = 0; k < given.count() && held.count() == given.count(); ++k) {
        const interval outputs = given.held(k)[0];
        const intervals has = held.held(k);
        if (outputs.empty() || size_of(has) == 0) continue;
        const padding_plan f = padding_plan_of(s, has[0], outputs, p.saves.pads);
        const bool fills = s.edge == boundary::zero;
        const index_t needed = (outputs.size() - 1) * s.stride + s.reach();
        const index_t wanted = fills ? f.before + has[0].size() + f.behind : needed;
        const window reads = s.needs();
        const bool beyond = reads.first(outputs.lo) < has[0].lo || reads.last(outputs.hi - 1) >= has[0].hi;
        if (wanted > size_of(has) || (!fills && beyond)) {
          m.framed = true;
          filled = filled || fills;
          gathers = gathers || !fills;
        }
        most = larger(most, wanted);
        read = larger(read, fills ? f.read.size() : needed);
      }
      if (read > 0) least = smaller(read, most);
      if (gathers) {
        ++steps;
        longer = most;
        shorter = held.largest();
      }
    }
    m.padded = capped_product(m.padded, most);
    m.read = capped_product(m.read, least);
    m.partly = capped_product(m.partly, m.parts == 0 ? least : most);
    m.parts += least < most;
  }
  m.gathers = steps > 0;
  if (steps + filled > 1 && steps > 0) m.before = m.padded / larger(1, longer) * shorter;
  return m;
}

// A copy of an operand that is a part of its box, as convolutions make one: their kernels read what lies in one piece.
constexpr index_t in_one_piece(const layer_memory& m) {
  const change_memory& x = m.operands[0];
  return !m.parameters.empty() && x.changes && !x.fresh ? x.behind : 0;
}

// How much an operand grows where it is read as a padded box. The part of that that is read is copied, and so are the
// windows of it.
constexpr void add_windows(const layer_plan& p, element e, layer_memory& m) {
  const index_t returning = m.returning;  // what its backward has before that of windows
  const index_t copy = in_one_piece(m);
  const read_boxes n = read_boxes_of(p, e);
  const index_t was = bytes_held(p.used(), e);
  const bool keeps = p.saves.windows[0].crops;  // the part is the result
  const index_t part = n.parts > 0 && !keeps ? n.read : 0;
  const index_t copied = p.saves.columns > 0 ? n.copied : 0;
  const edge_memory edges = edges_of(p, e);
  if (edges.padded > 0) {
    m.operands[0].fresh = false;
    m.remembered = capped_sum(m.remembered, edges.kept);
    m.scratch = capped_sum(m.scratch, larger(n.padded, edges.padded));
  } else if (n.framed) {
    change_memory& x = m.operands[0];
    if (!x.changes) x.before = was;
    else if (n.gathers) x.between = larger(x.between, was);
    x.behind = n.padded;
    x.fresh = x.changes = true;
    x.between = larger(x.between, n.before);
    x.returning = larger(x.returning, larger(0, n.before - x.before));
    m.scratch = capped_sum(m.scratch, capped_product(n.padded - was, p.saves.copies));
  }
  // LibTorch's convolution takes groups one after the other, and puts what they give end to end.
  const index_t groups = groups_here(p), given = bytes_held(p.raw(), e);
  const index_t of_group = groups > 1 ? capped_sum(n.read, given) / groups : 0;
  index_t there = capped_sum(capped_sum(part, copied), groups > 1 ? n.read / groups : 0);
  index_t back = capped_sum(capped_sum(part, of_group), copied);
  if (groups > 1) {
    there = larger(there, given);
    back = capped_sum(larger(back, n.read), m.parameters.empty() ? 0 : m.parameters[0].behind);
    if (part > 0) back = larger(back, n.partly);
  } else if (part > 0) {
    back = larger(n.partly, capped_sum(copied, larger(0, capped_product(2, part) - n.padded)));
  } else if (keeps && n.parts > 1) {
    back = n.partly;
  }
  m.scratch = capped_sum(m.scratch, capped_sum(copy, there));
  m.returning = capped_sum(m.returning, capped_sum(copy, back));
  // behind the operation's own backward
  if (edges.padded > 0) m.returning = larger(m.returning, capped_sum(returning, larger(n.padded, edges.padded)));
}

/// The boxes in which transposed windows give a result.
struct given_boxes {
  index_t made = 0;      ///< what the inputs give
  index_t whole = 0;     ///< and the result, which is a view of it where all of that is made
  index_t padding = 0;   ///< the gradient, padded to that in all dimensions but the first such one
  bool complete = true;  ///< else what is made is copied between zeros
  bool cropped = false;  ///< what is made is more than the result along some dimension
};
constexpr given_boxes given_boxes_of(const layer_plan& p, element e) {
  const int first = p.used().dims.count - p.saves.windows.count;
  given_boxes m;
  m.made = m.whole = m.padding = bytes_of(e);
  for (int d = 0; d < p.raw().dims.count; ++d) {
    index_t of_inputs = 0;
    const parts inputs(p.used(), d);
    const parts outputs(p.raw(), d);
    const index_t largest = outputs.largest();
    index_t most = largest;
    for (int k = 0; d >= first && k < outputs.count(); ++k) {
      const interval in = inputs.held(k)[0], out = outputs.held(k)[0];
      if (in.empty() || out.empty()) continue;
      const interval one = transposed_crop_of(p.saves.windows[d - first], in, out).made;
      m.complete = m.complete && one.lo <= out.lo && out.hi <= one.hi;
      m.cropped = m.cropped || one.lo < out.lo || out.hi < one.hi;
      most = larger(most, one.size());
      of_inputs = larger(of_inputs, one.size());
    }
    m.made = capped_product(m.made, of_inputs > 0 ? of_inputs : largest);
    m.padding = capped_product(m.padding, m.padding == m.whole && most > largest ? largest : most);
    m.whole = capped_product(m.whole, most);
  }
  return m;
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
  const given_boxes n = given_boxes_of(p, e);
  const index_t own = bytes_held(p.used(), e), given = n.complete ? n.whole : n.made;
  if (p.saves.windows.count == 3) {  // ones, by which the bias is added; the result begins as the operand
    index_t places = given;
    for (int d = 0; d < first; ++d) places /= larger(1, parts(p.raw(), d).largest());
    copied = larger(capped_sum(copied, places), own);
    m.results[0].room = own;
  }
  if (const index_t groups = groups_here(p); groups > 1) {  // one after the other, and put end to end
    copied = larger(given, capped_sum(copied, own / groups));
    m.returning = capped_sum(m.returning, capped_sum(larger(own, capped_sum(own, given) / groups),
                                                     m.parameters.empty() ? 0 : m.parameters[0].behind));
  }
  const index_t copy = in_one_piece(m);
  m.scratch = capped_sum(m.scratch, capped_sum(copy, copied));
  m.returning = capped_sum(m.returning, copy);
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
  if (!n.complete) {
    m.scratch = capped_sum(m.scratch, n.made);
    m.returning = capped_sum(m.returning, capped_product(1 + n.cropped, n.made));
    return;
  }
  if (n.whole == y.before) return;
  y.whole = n.whole;
  y.padding = n.padding == y.before ? 0 : n.padding;
}

}  // namespace tessera::detail
