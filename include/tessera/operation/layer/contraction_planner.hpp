#pragma once

#include <tessera/operation/layer/contraction_letters.hpp>
#include <tessera/operation/plan/expert_rule.hpp>
#include <tessera/operation/rule/split_dimension.hpp>

namespace tessera {

namespace detail {

/// How the workers share a contraction.
struct sharing {
  static_vector<int, max_axes> cut_out;  ///< axes that cut the weight's outputs: the input is gathered over them
  static_vector<int, max_axes> cut_in;   ///< axes that cut its inputs: the result is reduced over them
  unsigned spread = 0;  ///< bit i: the windows of kernel i are added to the result, not held of the input
};

class contraction_planner {
 public:
  constexpr contraction_planner(const layout& x, const contraction& layer)
      : x_(x),
        layer_(layer),
        feature_(layer.feature < 0 ? x.dims.count + layer.feature : layer.feature),
        letters_(x, layer, feature_) {}

  /// Axes that cut the features of the input, outermost first.
  constexpr static_vector<int, max_axes> feature_axes() const {
    static_vector<int, max_axes> k;
    for (int l = 0; l < x_.levels(feature_); ++l) k.push(x_.cutter(feature_, l));
    return k;
  }

  /// The kernels, a bit each, whose dimension may stay as it is cut, so that workers have terms of the result:
  /// transposed ones.
  constexpr unsigned spreading() const {
    unsigned all = 0;
    for (int i = 0; i < layer_.kernels.count; ++i) {
      const int d = feature_ + 1 + i;
      if (layer_.transposed && x_.levels(d) > 0 && x_.dims[d].has_static_extent()) all |= 1u << i;
    }
    return all;
  }

  /// The layer when it is shared like this.
  constexpr layer_plan plan(const sharing& how) const {
    const auto& [cut_out, cut_in, spread] = how;
    layer_plan p;
    layout used = x_;
    if (layer_.by_expert()) tile_experts(used);
    if (p.why = check_groups(); !p.why.ok()) return p;
    const bool grouped = layer_.groups > 1;
    const static_vector<int, max_axes> group_cut = grouped ? joined_lists(cut_out, cut_in) : cut_out;
    if (grouped) {
      cut_groups(used, group_cut);
    } else {
      for (int a : cut_out) used.set_placement(a, {});
      if (!(cut_in == feature_axes())) cut_features(used, cut_in);
    }
    if (p.why = hold(used, spread); !p.why.ok()) return p;
    if (p.why = check_change(x_, used); !p.why.ok()) return p;

    parameter_value weight;
    weight.name = "weight";
    weight.used = grouped ? group_weights(used, group_cut) : weights(used, cut_out, cut_in);
    weight.stored = stored_form(weight.used);
    if (p.why = check_count(weight.used); !p.why.ok()) return p;
    index_t fan_in = weight.used.dims[1].extent;
    for (const sliding& s : layer_.kernels) fan_in *= s.kernel;
    weight.initial = init::usual(fan_in);
    weight.has_element = layer_.has_element;
    weight.element = layer_.element;
    weight.as_operand = true;
    p.add_parameter(weight);

    inferred x{used, {}};
    inferred w{weight.used, {}};
    if (grouped) {
      x = split_in_two(used, feature_, group_in());
      w = split_in_two(weight.used, 0, rows_of_group());
      if (p.why = first_of(x.why, w.why); !p.why.ok()) return p;
    }
    inferred y = infer(letters_.multiply(spread), two(x.layout, w.layout));
    if (y.why.ok() && grouped) y = merged_from_two(y.layout, feature_);
    if (p.why = first_of(y.why, check_count(y.layout)); !p.why.ok()) return p;
    const layout& raw = y.layout;
    if (layer_.has_output && layer_.output.dims.count != raw.dims.count) {
      p.why = refusal{code::wrong_number_of_dimensions, layer_.output.dims.count, raw.dims.count};
      return p;
    }
    const layout given = layer_.has_output ? given_output(raw) : usual_output(raw, how);
    if (p.why = first_of(check(given), check_change(raw, given)); !p.why.ok()) return p;
    p.add_input(x_, used);
    p.add_output(raw, given);
    if (layer_.round_terms) p.round_terms();
    p.saves = memory(raw == given);
    // an output reads all features and taps, an input of a transposed one gives to all of them
    const held_extents own = p.weight_extents();
    if (layer_.transposed) p.add_product({p.used_extents(), own.without(0)});
    else p.add_product({p.raw_extents(), layer_.by_expert() ? own.only(1) : own.without(0)});
    if (layer_.bias) {
      parameter_value bias = weight;
      bias.name = "bias";
      bias.used = biases(given);
      bias.stored = stored_form(bias.used);
      const inferred sum = infer(letters_.add(), two(given, bias.used));
      if (p.why = sum.why; !p.why.ok()) return p;
      p.add_parameter(bias);
    }
    return p;
  }

 private:
  // Input and weight are saved; a bias behind an exchange is added to a copy.
  constexpr saved_tensors memory(bool leaves) const {
    saved_tensors f = saved_tensors::saving(1, 1);
    f.adds = layer_.bias && !leaves;
    f.spreads = layer_.transposed;
    f.pads = builtin_padding::any;
    f.groups = layer_.groups;
    for (const sliding& s : layer_.kernels) {
      f.windows.push(s);
      if (f.spreads) f.columns = group_out();
      else if (s.kernel > 1 || s.stride > 1 || s.before != 0 || s.after != 0) f.columns = group_in();
    }
    return f;
  }
  static constexpr static_vector<operand, 4> two(const layout& a, const layout& b) {
    static_vector<operand, 4> o = no_items<operand, 4>;
    o.push({a, false});
    o.push({b, false});
    return o;
  }

  // Lets a cut dimension hold what its windows need, or where it stays a tiling that gives terms.
  constexpr refusal hold(layout& x, unsigned spread) const {
    for (int i = 0; i < layer_.kernels.count; ++i) {
      const int d = feature_ + 1 + i;
      const index_t n = x.dims[d].extent;
      if (const refusal r = layer_.check(i, d, n); !r.ok()) return r;
      if ((spread >> i & 1u) == 0) {
        if (const refusal r = hold_window(x, d, layer_.needs(i), layer_.outputs(i, n), layer_.keeps(i, n)); !r.ok())
          return r;
      } else if (x.dims[d].kind != cover::tiled) {
        x.dims[d].tile();
        x.dims[d].balance(1);
      }
    }
    return {};
  }

  // Lets `cut_in` cut the features, and nothing else.
  constexpr void cut_features(layout& x, const static_vector<int, max_axes>& cut_in) const {
    for (int a : feature_axes()) x.set_placement(a, {});
    x.dims[feature_].balance(cut_in.empty() ? 1 : x.dims[feature_].grain());
    for (int a : cut_in) {
      x.set_placement(a, {});
      x.cut_by(feature_, a);
    }
  }

  constexpr layout weights(const layout& used, const static_vector<int, max_axes>& cut_out,
                           const static_vector<int, max_axes>& cut_in) const {
    layout w = layer_.by_expert() ? weight_of_each(used, {layer_.experts}) : weight_for(used, {});
    dimension out;
    out.extent = layer_.out;
    out.set_grain(cut_out.empty() ? 1 : layer_.grain_out);
    dimension in = used.dims[feature_];
    in.tag = {};
    const int inputs = layer_.inputs_at();
    w.dims.push(inputs < layer_.outputs_at() ? in : out);
    w.dims.push(inputs < layer_.outputs_at() ? out : in);
    for (const sliding& s : layer_.kernels) {
      dimension k;
      k.extent = s.kernel;
      w.dims.push(k);
    }
    for (int a : cut_out) w.cut_by(layer_.outputs_at(), a);
    for (int a : cut_in) w.cut_by(inputs, a, used.placements[a].joined);
    w.dims[inputs].deal_as(in);
    return w;
  }

  constexpr index_t group_in() const { return x_.dims[feature_].extent / layer_.groups; }
  constexpr index_t group_out() const { return layer_.out / layer_.groups; }
  constexpr index_t rows_of_group() const { return layer_.transposed ? group_in() : group_out(); }

  constexpr refusal check_groups() const {
    const index_t in = x_.dims[feature_].extent;
    const bool some = layer_.groups == 1 || (in > 0 && layer_.out > 0);
    const bool divides = layer_.groups >= 1 && some && in % layer_.groups == 0 && layer_.out % layer_.groups == 0;
    return divides ? refusal{} : refusal{code::groups_do_not_divide, in, layer_.out, layer_.groups};
  }

  // The axes that cut the features, then what else was named.
  constexpr static_vector<int, max_axes> joined_lists(const static_vector<int, max_axes>& one,
                                                      const static_vector<int, max_axes>& other) const {
    static_vector<int, max_axes> all = feature_axes();
    for (const auto* list : {&one, &other})
      for (int a : *list) {
        bool known = false;
        for (int k : all) known = known || k == a;
        if (!known) all.push(a);
      }
    return all;
  }

  // Whole groups on every worker: a group is a batch label, so nothing is summed over a cut.
  constexpr void cut_groups(layout& x, const static_vector<int, max_axes>& axes) const {
    dimension& f = x.dims[feature_];
    if (axes == feature_axes() && f.kind == cover::tiled && f.grain() % group_in() == 0) return;
    for (int a : axes) x.set_placement(a, {});
    f.balance(group_in());
    for (int a : axes) x.cut_by(feature_, a);
  }

  constexpr layout group_weights(const layout& used, const static_vector<int, max_axes>& axes) const {
    layout w = weights(used, {}, {});
    w.dims[1] = {};
    w.dims[1].extent = layer_.transposed ? group_out() : group_in();
    const dimension& f = used.dims[feature_];
    for (int a : axes) w.cut_by(0, a, used.placements[a].joined);
    w.dims[0].set_grain(axes.empty() ? 1 : f.grain() / group_in() * rows_of_group());
    w.dims[0].deal_as(f);
    return w;
  }

  // Whether an axis cuts the experts, who have their weights where they are.
  constexpr bool cuts_experts(const axis_placement& r) const {
    return layer_.by_expert() && r.kind == placement::cut && r.dimension == 0;
  }

  constexpr layout biases(const layout& y) const {
    layout b;
    b.mesh = y.mesh;
    dimension one;
    one.extent = 1;
    if (layer_.by_expert()) {
      b.dims.push(y.dims[0]);
      b.dims.push(one);
    }
    b.dims.push(y.dims[feature_]);
    const auto outputs = static_cast<signed char>(b.dims.count - 1);
    for (const axis_placement& r : y.placements)
      b.placements.push(cuts_experts(r) ? r
                        : r.kind == placement::cut && r.dimension == feature_
                            ? axis_placement{placement::cut, outputs, r.level, r.joined}
                        : r.kind == placement::cut ? axis_placement{}
                                                   : r);
    return b;
  }

  // The input's partition without grain: what cut its features cuts the result's, partial axes too; terms of windows
  // are added.
  constexpr layout usual_output(layout y, const sharing& how) const {
    for (int i = 0; i < layer_.kernels.count; ++i) {
      if ((how.spread >> i & 1u) == 0) continue;
      dimension& d = y.dims[feature_ + 1 + i];
      d.tile();
      if (!layer_.keeps(i, x_.dims[feature_ + 1 + i].extent)) d.balance(1);
    }
    static_vector<int, max_axes> cutters;
    for (int a : joined_lists(how.cut_out, how.cut_in))
      if (y.placements[a].kind == placement::partial ||
          (y.placements[a].kind == placement::cut && y.placements[a].dimension == feature_))
        cutters.push(a);
    for (int a : cutters) y.set_placement(a, {});
    y.dims[feature_].balance(cutters.empty() ? 1 : layer_.grain_out);
    for (int i = 0; i < cutters.count; ++i) {
      const axis_placement& was = x_.placements[cutters[i]];
      y.cut_by(feature_, cutters[i], was.kind == placement::cut && was.joined && i > 0 && joins(cutters[i - 1], was));
    }
    return y;
  }

  // The axis one level further out than `inner` in the features of the input.
  constexpr bool joins(int axis, const axis_placement& inner) const {
    const axis_placement& outer = x_.placements[axis];
    return outer.kind == placement::cut && outer.dimension == inner.dimension && outer.level + 1 == inner.level;
  }

  constexpr layout given_output(const layout& y) const {
    layout out = layer_.output;
    for (int d = 0; d < out.dims.count; ++d) {
      out.dims[d].extent = y.dims[d].extent;
      out.dims[d].tag = y.dims[d].tag;
    }
    return out;
  }

  const layout& x_;
  const contraction& layer_;
  int feature_;
  contraction_letters letters_;
};

}  // namespace detail
}  // namespace tessera
