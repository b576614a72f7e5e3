#pragma once

#include <tessera/operation/rule/axis_rule.hpp>
#include <tessera/operation/rule/stream.hpp>
#include <tessera/topology/meeting.hpp>

namespace tessera {

/// The layout of an operation's result, or why the operation is illegal on these operands.
struct inferred {
  tessera::layout layout;
  refusal why;
};

namespace detail {

// A dimension that no operand has: a role makes it of others, merged, concatenated or split ones, or adds it.
constexpr refusal make_dimension(const signature& op, const static_vector<operand, 4>& operands, char letter,
                                 dimension& result) {
  index_t extent = 1;  // of the merged ones behind this one
  int merged = 0;
  const dimension* cut = nullptr;  // the range of a tiling that a concatenated one is
  for (int s = op.special.count - 1; s >= 0; --s) {
    const treated& t = op.special[s];
    if (t.into != letter && t.inner != letter) continue;
    if (t.how == treatment::added) {
      result.extent = t.extent;
      return {};
    }
    int o = 0;
    while (index_of(op.operands[o], t.letter) < 0) ++o;
    const int at = index_of(op.operands[o], t.letter);
    const dimension& d = operands[o].layout.dims[at];
    if (t.how == treatment::split) {
      if (d.extent != dynamic && d.extent % t.extent != 0) return refusal{code::split_uneven, at, d.extent, t.extent};
      if (letter == t.inner) {
        result.extent = t.extent;
      } else {
        result = outer_of(d, t.extent);
      }
    } else if (t.how == treatment::concatenated) {
      if (result.extent != dynamic) result.extent = d.extent == dynamic ? dynamic : result.extent + d.extent;
      if (operands[o].layout.levels(at) > 0) cut = &d;
    } else if (merged++ == 0) {
      result = d;
      extent = d.extent;
    } else {
      const index_t after = extent;
      if (after == dynamic && operands[o].layout.levels(at) > 0 &&
          !comes_out_even(d, operands[o].layout.part_count(at)))
        return refusal{code::grain_not_known, o, at};
      if (extent == dynamic || d.extent == dynamic) extent = dynamic;
      else if (!product_fits(extent, d.extent)) return refusal{code::count_overflows, s, d.extent};
      else extent *= d.extent;
      result = d;
      result.extent = extent;
      result.tag = {};
      if (after == 0) result.bounds = nullptr;  // parts of no element
      result.set_grain(after > 0 ? d.grain() * after : d.grain());
    }
  }
  if (cut != nullptr) {
    const index_t n = result.extent;
    result = *cut;
    result.tile();
    result.tag = {};
    result.extent = n;
  }
  return {};
}

// Extent, grain and cover of a dimension of the result.
constexpr refusal infer_dimension(const signature& op, const static_vector<operand, 4>& operands, char letter,
                                  dimension& result) {
  int source = -1;  // the operand whose cover the result has
  for (int o = 0; o < operands.count; ++o) {
    const int at = index_of(op.operands.items[o], letter);
    if (at < 0) continue;
    const dimension& d = operands.items[o].layout.dims.items[at];
    if (source >= 0 && result.extent != d.extent) return refusal{code::extents_differ, at, result.extent, d.extent};
    if (source >= 0 && (operands[o].layout.levels(at) == 0 || result.kind == cover::pending)) continue;
    result = d;
    source = o;
  }
  if (source < 0) return make_dimension(op, operands, letter, result);
  const treated how = op.of(letter);
  const int at = index_of(op.result, letter);
  const index_t n = result.extent;
  if (how.how == treatment::narrowed) {
    const index_t begin = -how.kernel.before;
    if (n != dynamic && begin + how.extent > n) return refusal{code::range_outside, at, n, begin, begin + how.extent};
    const int from = index_of(op.operands[source], letter);
    if (operands[source].layout.levels(from) > 0 || result.kind != cover::tiled) {
      if (result.zigzag) return refusal{code::interval_wanted, from};
      if (!can_narrow(result)) return refusal{code::window_without_halo, source, from};
      result.narrow(begin, how.extent);
    }
    result.extent = how.extent;
    result.tag = {};
  }
  if (how.how == treatment::scaled) {
    if (n != dynamic && !product_fits(n, how.extent)) return refusal{code::count_overflows, at, n};
    result.extent = n == dynamic ? dynamic : n * how.extent;
    result.tag = {};
    result.set_grain(result.grain() * how.extent);
  }
  if (how.how == treatment::spread) {
    if (operands[source].layout.levels(index_of(op.operands[source], letter)) > 0) {
      if (result.zigzag) return refusal{code::interval_wanted, index_of(op.operands[source], letter)};
      result.kind = cover::pending;
      result.outputs = n;
      result.needs = how.reads;
    }
    result.extent = how.extent;
    result.tag = {};
  }
  if (how.windows()) {
    if (how.how == treatment::windowed)
      if (const refusal r = how.kernel.check(at, n); !r.ok()) return r;
    const dimension input = result;
    result.extent = how.outputs(n);
    result.tag = {};
    if (input.kind == cover::tiled || holds_halo(input, how.needs(), result.extent)) result.tile();
    else  // a halo for windows to come is left
      result.needs = quotient(input.needs, how.needs(), result.extent, n);
  }
  return {};
}

constexpr inferred inferred_of(const signature& op, const static_vector<operand, 4>& operands);

// Along an axis that cuts what comes, each worker adds the parts in an order of its own: there copies of a sum differ.
constexpr refusal check_sum(const signature& op, const layout& comes, int operand, const layout& sum) {
  const int streamed = engine::index_of(op.operands[operand], op.streams());
  for (int a = 0; a < sum.placements.count; ++a) {
    const axis_placement& r = comes.placements[a];
    const bool cuts = r.kind == placement::cut && r.dimension == streamed && sum.mesh.axes[a].extent > 1;
    if (cuts && sum.placements[a].kind == placement::replicate)
      return refusal{code::streamed_to_copies, sum.mesh.axes[a].name, operand};
  }
  return {};
}

// The rules of what is streamed: those of what it brings as if it were here, and of a result whose terms are sent.
constexpr inferred inferred_of_stream(const signature& op, static_vector<operand, 4> operands) {
  int first = -1;
  for (int o = 0; o < operands.count; ++o) {
    layout& x = operands[o].layout;
    const int d = engine::brought_dimension(op, o, x);
    if (d < 0) continue;
    if (!x.dims[d].tiles()) return {{}, refusal{code::dimension_needed_whole, o, d}};
    if (first >= 0) {
      const layout& lead = operands[first].layout;
      const int leads = index_of(op.operands[first], op.streams());
      bool alike = same_intervals(lead.dims[leads], x.dims[d], x.part_count(d));
      for (int a = 0; a < x.placements.count; ++a) {
        const axis_placement& r = x.placements[a];
        const axis_placement& s = lead.placements[a];
        const bool cuts = r.kind == placement::cut && r.dimension == d;
        const bool leads_here = s.kind == placement::cut && s.dimension == leads;
        alike = alike && cuts == leads_here && (!cuts || (r.level == s.level && r.joined == s.joined));
      }
      if (!alike) return {{}, refusal{code::streamed_unalike, o, d}};
    } else {
      first = o;
    }
  }
  const static_vector<operand, 4> given = operands;
  for (int o = 0; o < operands.count; ++o)
    if (const int d = engine::brought_dimension(op, o, given[o].layout); d >= 0)
      operands[o].layout = engine::brought(given[o].layout, d);
  inferred y = inferred_of(engine::not_streamed(op), operands);
  const int d = engine::index_of(op.result, op.streams());
  if (!y.why.ok()) return y;
  if (first < 0 && d >= 0) y.layout = engine::sent(y.layout, d);
  if (first < 0 || d >= 0) return y;
  const refusal why = check_sum(op, given[first].layout, first, y.layout);
  return why.ok() ? y : inferred{{}, why};
}

// What `infer` gives.
constexpr inferred inferred_of(const signature& op, const static_vector<operand, 4>& operands) {
  inferred out;
  if (out.why = op.check(); !out.why.ok()) return out;
  if (operands.count != op.operands.count) {
    out.why = refusal{code::wrong_number_of_operands, op.operands.count, operands.count};
    return out;
  }
  const mesh_value& mesh = operands[0].layout.mesh;
  bool aligned = true;
  for (int o = 0; o < operands.count; ++o) {
    const layout& x = operands[o].layout;
    if (x.dims.count != op.operands[o].count) {
      out.why = refusal{code::operand_of_other_dimensions, o, op.operands[o].count, x.dims.count};
      return out;
    }
    const bool alike = o == 0 || x.mesh == mesh;
    if (!alike && !engine::meet(x.mesh, mesh)) {
      out.why = refusal{code::meshes_differ, o};
      return out;
    }
    aligned = aligned && alike && engine::ones_idle(x);
  }
  if (!aligned) {
    static_vector<operand, 4> on_one_mesh = operands;
    for (operand& o : on_one_mesh) o.layout = engine::over(o.layout, mesh);
    return inferred_of(op, on_one_mesh);
  }
  if (op.streams() != 0) return inferred_of_stream(op, operands);
  out.layout.mesh = operands[0].layout.mesh;
  out.layout.placements.resize(out.layout.mesh.axes.count);
  out.layout.dims.resize(op.result.count);
  for (int d = 0; d < op.result.count; ++d)
    if (out.why = infer_dimension(op, operands, op.result.items[d], out.layout.dims.items[d]); !out.why.ok())
      return out;
  for (int o = 0; o < op.operands.count; ++o)
    for (int d = 0; d < op.operands.items[o].count; ++d) {
      const char letter = op.operands.items[o].items[d];
      if (engine::index_of(op.result, letter) >= 0) continue;
      dimension summed;
      if (out.why = infer_dimension(op, operands, letter, summed); !out.why.ok()) return out;
    }
  for (int o = 0; o < operands.count; ++o)
    for (int d = 0; d < operands.items[o].layout.dims.count; ++d)
      if (operands.items[o].layout.dims.items[d].kind != cover::tiled)
        if (out.why = part_rule(op, operands).of_uncut(o, d); !out.why.ok()) return out;
  for (int a = 0; a < out.layout.placements.count; ++a) {
    if (out.layout.mesh.axes[a].extent == 1) continue;
    if (out.why = detail::axis_rule(op, operands, a).apply(out.layout); !out.why.ok()) return out;
  }
  for (int d = 0; d < out.layout.dims.count; ++d) {
    out.layout.close_levels(d);
    if (out.layout.levels(d) == 0) out.layout.dims[d].balance(1);
  }
  return out;
}

}  // namespace detail

#ifdef TESSERA_COMPILED
namespace engine {

/// `infer` at run time, as the compiled library holds it.
inferred infer_at_run_time(const signature& op, const static_vector<operand, 4>& operands);

}  // namespace engine
#endif

/// Applies the rules for local operations, axis by axis, and gives the layout of the result.
///
/// Sums take operands alike; products and contractions take at most one partial operand; non-linear operations take
/// none. A sum over a cut dimension is partial. An invariant operand meets only invariant ones. Anything else is
/// refused. Operands may lie on meshes that differ by axes of extent 1; the result lies on that of the first. The same
/// function serves the compiler and run time.
constexpr inferred infer(const signature& op, const static_vector<operand, 4>& operands) {
#ifdef TESSERA_COMPILED
  if (!__builtin_is_constant_evaluated()) return engine::infer_at_run_time(op, operands);
#endif
  return detail::inferred_of(op, operands);
}

}  // namespace tessera
