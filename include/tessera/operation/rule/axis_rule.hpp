#pragma once

#include <tessera/generated/plan.hpp>
#include <tessera/operation/rule/signature.hpp>

namespace tessera::detail {

// A cut dimension serves a window whose halo it holds, also as the first step of a composed window. A tiling serves
// only its own window, or one that reads each place at that place.
constexpr bool holds_halo(const dimension& d, const window& needs, index_t outputs) {
  return d.kind != cover::tiled && d.needs == needs && d.outputs == outputs;
}
constexpr bool serves(const dimension& d, const window& needs, index_t outputs) {
  const bool in_place = needs == window{1, 0, 0, 1} && outputs == d.extent;
  return holds_halo(d, needs, outputs) ||
         ((!d.tiles() || (in_place && d.kind != cover::tiled)) && divides(d.needs, needs, outputs, d.extent));
}

// A range is left where it is, whatever is held of it, unless that goes around the edge or the extent is not known.
constexpr bool can_narrow(const dimension& d) {
  if (d.extent == dynamic)
    return d.kind != cover::tiled && d.needs.edge == boundary::zero && d.needs.unreached_after == 0;
  return d.needs.edge == boundary::zero;
}

// Whether every part of a dimension has as many elements.
constexpr bool comes_out_even(const dimension& d, int parts) {
  return d.bounds == nullptr && d.extent != dynamic && d.extent % (d.grain() * d.chunks(parts)) == 0;
}

// Whether every part of a dimension is whole inner ones of so many elements: by its grain, or because it comes out
// even.
constexpr bool splits(const dimension& d, index_t inner, int parts) {
  if (d.kind != cover::tiled || d.grain() % inner == 0) return d.kind == cover::tiled;
  return comes_out_even(d, parts) && d.extent / d.chunks(parts) % inner == 0;
}

// The outer dimension of one that is split so.
constexpr dimension outer_of(dimension d, index_t inner) {
  d.tag = {};
  if (d.extent != dynamic) d.extent /= inner;
  d.set_grain(larger(1, d.grain() / inner));
  return d;
}

// What an operation does with a dimension of which workers have parts, or the only worker has no more than a part.
class part_rule {
 public:
  constexpr part_rule(const signature& op, const static_vector<operand, 4>& operands) : op_(op), operands_(operands) {}

  // The rule of a dimension that nothing cuts: what holds all of it is whole; what its window leaves out nobody has.
  constexpr refusal of_uncut(int first, int dim) const {
    const dimension& d = operands_[first].layout.dims[dim];
    if (operands_[first].layout.levels(dim) > 0 || d.reaches_all()) return {};
    const treated how = op_.of(op_.operands[first][dim]);
    if (const refusal r = parted(how, first, dim, 1); !r.ok()) return r;
    bool fits = kept(how) >= 0 || d.kind == cover::pending;  // a sum lacks no terms
    for (int o = 0; o < operands_.count; ++o)
      if (const int has = counterpart(how, o); has >= 0)
        fits = fits && lies_beside(how, o, d, operands_[o].layout.dims[has], 1);
    return fits ? served(how, first, dim) : refusal{code::dimension_needed_whole, first, dim};
  }

 protected:
  // Whether the operation takes parts of a dimension at all.
  constexpr refusal parted(const treated& how, int first, int dim, int parts) const {
    const dimension& d = operands_[first].layout.dims[dim];
    if (how.how == treatment::split && !splits(d, how.extent, parts))
      return refusal{code::split_through_part, first, dim, how.extent};
    if (!cuttable(how, d) || !lies_beside(how, first, d, d, parts))
      return refusal{code::dimension_needed_whole, first, dim};
    return {};
  }
  // Whether parts are what its windows need.
  constexpr refusal served(const treated& how, int first, int dim) const {
    const dimension& d = operands_[first].layout.dims[dim];
    if (how.windows() && d.zigzag) return refusal{code::interval_wanted, dim};
    return how.windows() && !serves(d, how.needs(), how.outputs(d.extent))
               ? refusal{code::window_without_halo, first, dim}
               : refusal{};
  }
  // Where the result has a dimension.
  constexpr int kept(const treated& how) const { return index_of(op_.result, how.into != 0 ? how.into : how.letter); }

  // The dimension of an operand that is treated together with another: the one of its letter, or what is concatenated
  // with it.
  constexpr int counterpart(const treated& t, int o) const {
    int at = index_of(op_.operands[o], t.letter);
    if (at >= 0 || t.how != treatment::concatenated) return at;
    for (const treated& other : op_.special)
      if (at < 0 && other.how == t.how && other.into == t.into) at = index_of(op_.operands[o], other.letter);
    return at;
  }
  // Whether a dimension is cut as it must be beside one cut as d: alike, or, concatenated, in its range of the common
  // tiling.
  constexpr bool lies_beside(const treated& t, int o, const dimension& d, const dimension& its, int parts) const {
    return same_intervals(t.how == treatment::concatenated ? beside(t, o, d) : d, its, parts);
  }
  const signature& op_;
  const static_vector<operand, 4>& operands_;

 private:
  // Whether what the operation does leaves a cut of this dimension a cut.
  constexpr bool cuttable(const treated& how, const dimension& d) const {
    switch (how.how) {
      case treatment::plain:
      case treatment::windowed:
      case treatment::resampled:
      case treatment::narrowed:
      case treatment::streamed:
      case treatment::concatenated: return true;
      case treatment::whole:
      case treatment::added: return false;
      case treatment::spread:
      case treatment::scaled: return d.kind == cover::tiled;
      case treatment::merged: return outermost(how) && (d.kind == cover::tiled || alone(how));
      case treatment::split: return true;
    }
    return false;
  }
  constexpr dimension beside(const treated& t, int o, dimension d) const {
    index_t begin = 0;
    index_t length = 0;
    index_t n = 0;
    for (int other = 0; other < operands_.count; ++other) {
      const int at = counterpart(t, other);
      const index_t extent = at < 0 ? 0 : operands_[other].layout.dims[at].extent;
      if (extent == dynamic) return {};  // then nobody knows the ranges
      if (other == o) {
        begin = n;
        length = extent;
      }
      n += extent;
    }
    d.tile();
    d.extent = n;
    d.narrow(begin, length);
    return d;
  }

  constexpr bool alone(const treated& t) const {
    int n = 0;
    for (const treated& other : op_.special) n += other.how == treatment::merged && other.into == t.into;
    return n == 1;
  }
  constexpr bool outermost(const treated& t) const {
    for (const treated& other : op_.special)
      if (other.how == treatment::merged && other.into == t.into) return other.letter == t.letter;
    return true;
  }
};

// What one axis of the mesh is to an operation's operands.
class axis_rule : part_rule {
 public:
  constexpr axis_rule(const signature& op, const static_vector<operand, 4>& operands, int axis)
      : part_rule(op, operands), axis_(axis) {}

  // Sets the axis's placement in the result; the sum over a cut dimension is partial.
  constexpr refusal apply(layout& result) const {
    for (int o = 0; o < operands_.count; ++o)
      if (kind(o) == placement::cut) return cut(o, result);
    return uncut(result);
  }

 private:
  constexpr const axis_placement& of(int o) const { return operands_[o].layout.placements[axis_]; }
  constexpr placement kind(int o) const { return of(o).kind; }
  constexpr const text& name() const { return operands_[0].layout.mesh.axes[axis_].name; }

  constexpr refusal cut(int first, layout& result) const {
    const axis_placement& lead = of(first);
    const dimension& d = operands_[first].layout.dims[lead.dimension];
    const treated how = op_.of(op_.operands[first][lead.dimension]);
    const int parts = operands_[first].layout.part_count(lead.dimension);
    if (const refusal r = parted(how, first, lead.dimension, parts); !r.ok()) return r;
    int terms = 0;    // operands whose intervals are pending
    int lacking = 0;  // operands without this dimension
    for (int o = 0; o < operands_.count; ++o) {
      const int has = counterpart(how, o);
      if (has >= 0) {
        const dimension& other = operands_[o].layout.dims[has];
        const bool alike = kind(o) == placement::cut && of(o).dimension == has && of(o).level == lead.level &&
                           of(o).joined == lead.joined && lies_beside(how, o, d, other, parts);
        if (!alike) return refusal{code::cut_unalike, name(), o, has};
        terms += other.kind == cover::pending && !other.tiles() ? 1 : 0;
        continue;
      }
      ++lacking;
      if (kind(o) == placement::partial)
        return op_.kind == linearity::additive ? refusal{code::replicate_added_to_partial, name(), first}
                                               : refusal{code::product_of_partials, name(), o};
      if (kind(o) == placement::invariant && !operands_[o].constant) return refusal{code::invariant_mixed, name(), o};
      if (kind(o) == placement::on) return refusal{code::held_on_one_coordinate, name(), o};
      if (kind(o) == placement::cut) return refusal{code::cut_unalike, name(), o, of(o).dimension};
    }
    if (const refusal r = served(how, first, lead.dimension); !r.ok()) return r;
    const int at = kept(how);
    if (const refusal r = check_terms(terms, lacking, at, first, lead.dimension); !r.ok()) return r;
    if (at >= 0) {
      result.placements[axis_] = {placement::cut, static_cast<signed char>(at), lead.level, lead.joined};
      return {};
    }
    if (!d.tiles() && terms == 0) return refusal{code::haloed_summed, first, lead.dimension};
    if (op_.kind == linearity::nonlinear && op_.with == combine::sum)
      return refusal{code::dimension_needed_whole, first, lead.dimension};
    result.placements[axis_] = partial_by(op_.with);
    return {};
  }

  // Terms pass linear operations only: a sum takes all operands as terms, a product takes one. An operand without the
  // dimension of terms, or of the sum, would be added once for each part.
  constexpr refusal check_terms(int terms, int lacking, int kept, int first, int dim) const {
    if (op_.kind == linearity::additive && lacking > 0 && (terms > 0 || kept < 0))
      return refusal{code::replicate_added_to_partial, name(), first};
    if (terms == 0) return {};
    if (op_.kind == linearity::nonlinear) return refusal{code::pending_not_linear, first, dim};
    if (op_.kind == linearity::additive && terms + lacking < operands_.count)
      return refusal{code::pending_not_linear, first, dim};
    if (op_.kind == linearity::multilinear && terms > 1) return refusal{code::product_of_partials, name(), first};
    return {};
  }

  constexpr refusal uncut(layout& result) const {
    int partials = 0;
    int invariants = 0;
    int ons = 0;
    int others = 0;  // replicate, and constants that are told nothing else
    int a_partial = -1;
    int a_replicate = -1;
    for (int o = 0; o < operands_.count; ++o) {
      const placement k = kind(o);
      if (k == placement::partial) {
        ++partials;
        if (a_partial < 0 || of(o).with != combine::sum) a_partial = o;
      } else if (operands_[o].constant && k != placement::on) {
        // counts as what the others are
      } else if (k == placement::invariant) {
        ++invariants;
      } else if (k == placement::on) {
        ++ons;
      } else {
        ++others;
        a_replicate = o;
      }
    }
    if (ons > 0) {
      for (int o = 0; o < operands_.count; ++o)
        if (kind(o) != placement::on || of(o).coordinate != of_on().coordinate)
          return refusal{code::held_on_one_coordinate, name(), o};
      result.placements[axis_] = of_on();
      return {};
    }
    if (partials > 0) {
      const bool alike = op_.with != combine::sum && of(a_partial).with == op_.with;  // a maximum of maxima
      if (!alike && (op_.kind == linearity::nonlinear || of(a_partial).with != combine::sum))
        return refusal{code::nonlinear_on_partial, name(), a_partial};
      if (invariants > 0) return refusal{code::invariant_mixed, name(), a_partial};
      if (op_.kind == linearity::additive && partials < operands_.count)
        return refusal{code::replicate_added_to_partial, name(), not_partial()};
      if (op_.kind == linearity::multilinear && partials > 1)
        return refusal{code::product_of_partials, name(), a_partial};
      result.placements[axis_] = of(a_partial);
      return {};
    }
    if (invariants > 0 && others > 0) return refusal{code::invariant_mixed, name(), a_replicate};
    result.placements[axis_] = {invariants > 0   ? placement::invariant
                                : all_constant() ? kind(0)
                                                 : placement::replicate};
    return {};
  }

  constexpr int not_partial() const {
    for (int o = 0; o < operands_.count; ++o)
      if (kind(o) != placement::partial) return o;
    return -1;
  }
  constexpr bool all_constant() const {
    for (const operand& o : operands_)
      if (!o.constant) return false;
    return true;
  }
  constexpr const axis_placement& of_on() const {
    for (int o = 0; o < operands_.count; ++o)
      if (kind(o) == placement::on) return of(o);
    return of(0);
  }

  int axis_;
};

}  // namespace tessera::detail
