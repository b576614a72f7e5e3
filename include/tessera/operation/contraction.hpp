#pragma once

#include <tessera/operation/layer_plan.hpp>

namespace tessera {

/// What linear layers and convolutions have in common: a weight [out, in, kernel…] summed over the input's features.
struct contraction {
  int feature = -1;                     ///< the dimension of the features; −1 is the last
  index_t out = 0;                        ///< features of the result
  static_vector<sliding, 8> kernels;    ///< windows of the dimensions behind it
  bool bias = true;
  bool chosen = false;                  ///< the weight's cut is given, not the cheapest
  static_vector<text, max_axes> cut_out;  ///< axes that cut the weight's outputs, outermost first
  static_vector<text, max_axes> cut_in;   ///< axes that cut the weight's inputs
  bool has_output = false;
  tessera::layout output;               ///< the result's partition, where it is given (extents are filled in)
  refusal why;                          ///< what does not fit in the options themselves
};

namespace detail {

class contraction_form {
 public:
  constexpr contraction_form(const layout& x, const contraction& what) : x_(x), what_(what) {
    feature_ = what.feature < 0 ? x.dims.count + what.feature : what.feature;
    batch_ = feature_;
    for (int i = 0; i < batch_; ++i) in_.push(static_cast<char>('a' + i));
    in_.push('f');
    for (int i = 0; i < what.kernels.count; ++i) in_.push(static_cast<char>('s' + i));
  }

  /// Axes that cut the features of the input, outermost first.
  constexpr static_vector<int, max_axes> feature_axes() const {
    static_vector<int, max_axes> k;
    for (int l = 0; l < x_.levels(feature_); ++l) k.push(x_.cutting(feature_, l));
    return k;
  }

  /// The layer when `cut_out` cut the weight's outputs (the input is gathered over them) and `cut_in` its inputs (the result
  /// is reduced over them).
  constexpr layer_plan plan(const static_vector<int, max_axes>& cut_out, const static_vector<int, max_axes>& cut_in) const {
    layer_plan p;
    p.input = x_;
    p.used = x_;
    for (int a : feature_axes()) p.used.mean(a, {});
    for (int a : cut_out) p.used.mean(a, {});
    for (int a : cut_in) {
      p.used.mean(a, {});
      p.used.cut_by(feature_, a);
    }
    if (cut_in.empty()) p.used.dims[feature_].set_grain(1);
    if (p.why = hold_windows(p.used, feature_ + 1, what_.kernels.items, what_.kernels.count); !p.why.ok()) return p;

    parameter_value weight;
    weight.name = "weight";
    weight.used = weights(p.used, cut_out, cut_in);
    weight.stored = stored_form(weight.used);
    if (p.why = check_count(weight.used); !p.why.ok()) return p;
    weight.fan_in = x_.dims[feature_].extent;
    for (const sliding& s : what_.kernels) weight.fan_in *= s.kernel;
    p.parameters.push(weight);

    const inferred y = infer(multiply(), two(p.used, weight.used));
    if (p.why = first_of(y.why, check_count(y.layout)); !p.why.ok()) return p;
    p.raw = y.layout;
    p.output = what_.has_output ? given_output(p.raw) : usual_output(p.raw, cut_out, cut_in);
    if (p.why = check_change(p.raw, p.output); !p.why.ok()) return p;
    if (what_.bias) {
      parameter_value bias;
      bias.name = "bias";
      bias.used = biases(p.output);
      bias.stored = stored_form(bias.used);
      bias.fan_in = weight.fan_in;
      const inferred sum = infer(add(), two(p.output, bias.used));
      if (p.why = sum.why; !p.why.ok()) return p;
      p.parameters.push(bias);
    }
    return p;
  }

 private:
  static constexpr static_vector<operand, 4> two(const layout& a, const layout& b) {
    static_vector<operand, 4> o;
    o.push({a, false});
    o.push({b, false});
    return o;
  }

  constexpr signature multiply() const {
    signature s;
    s.kind = linearity::multilinear;
    s.operands.push(in_);
    letters w;
    w.push('o');
    w.push('f');
    s.result = in_;
    s.result[feature_] = 'o';
    for (int i = 0; i < what_.kernels.count; ++i) {
      const char kernel = static_cast<char>('A' + i);
      w.push(kernel);
      s.special.push({in_[feature_ + 1 + i], treatment::windowed, what_.kernels[i], 0});
      s.special.push({kernel, treatment::whole, {}, 0});
    }
    s.operands.push(w);
    return s;
  }

  constexpr signature add() const {
    signature s;
    s.kind = linearity::additive;
    s.result = in_;
    s.result[feature_] = 'o';
    s.operands.push(s.result);
    s.operands.push(named("o"));
    return s;
  }

  constexpr layout weights(const layout& used, const static_vector<int, max_axes>& cut_out,
                           const static_vector<int, max_axes>& cut_in) const {
    layout w;
    w.mesh = x_.mesh;
    for (const axis_role& r : used.roles) w.roles.push(r.kind == role::cut || r.kind == role::partial ? axis_role{} : r);
    dimension out;
    out.extent = what_.out;
    w.dims.push(out);
    dimension in = used.dims[feature_];
    in.tag = {};
    w.dims.push(in);
    for (const sliding& s : what_.kernels) {
      dimension k;
      k.extent = s.kernel;
      w.dims.push(k);
    }
    for (int a : cut_out) w.cut_by(0, a);
    for (int a : cut_in) w.cut_by(1, a);
    return w;
  }

  constexpr layout biases(const layout& y) const {
    layout b;
    b.mesh = x_.mesh;
    b.dims.push(y.dims[feature_]);
    for (const axis_role& r : y.roles)
      b.roles.push(r.kind == role::cut && r.dimension == feature_ ? axis_role{role::cut, 0, r.level}
                   : r.kind == role::cut                           ? axis_role{}
                                                                   : r);
    return b;
  }

  // The input's partition without grain: what cut its features cuts the result's, partial axes too.
  constexpr layout usual_output(layout y, const static_vector<int, max_axes>& cut_out,
                                const static_vector<int, max_axes>& cut_in) const {
    static_vector<int, max_axes> order = feature_axes();
    for (const auto* list : {&cut_out, &cut_in})
      for (int a : *list) {
        bool known = false;
        for (int k : order) known = known || k == a;
        if (!known) order.push(a);
      }
    static_vector<int, max_axes> cutters;
    for (int a : order)
      if (y.roles[a].kind == role::partial || (y.roles[a].kind == role::cut && y.roles[a].dimension == feature_)) cutters.push(a);
    for (int a : cutters) y.mean(a, {});
    y.dims[feature_].set_grain(1);
    for (int a : cutters) y.cut_by(feature_, a);
    return y;
  }

  constexpr layout given_output(const layout& y) const {
    layout out = what_.output;
    for (int d = 0; d < out.dims.count && d < y.dims.count; ++d) {
      out.dims[d].extent = y.dims[d].extent;
      out.dims[d].tag = y.dims[d].tag;
    }
    return out;
  }

  const layout& x_;
  const contraction& what_;
  int feature_ = 0;
  int batch_ = 0;
  letters in_;
};

// One sample: dimensions before the features and dynamic ones behind it have extent 1, so a batch never changes a type.
constexpr layout of_one_sample(layout x, int feature) {
  for (int d = 0; d < x.dims.count; ++d)
    if (d < feature || x.dims[d].extent == dynamic) x.dims[d].extent = 1;
  return x;
}

// The places of named axes in the mesh; `used` has a bit for each that was named already.
constexpr static_vector<int, max_axes> found(const mesh_value& mesh, const static_vector<text, max_axes>& names, unsigned& used,
                                             refusal& why) {
  static_vector<int, max_axes> axes;
  for (int i = 0; i < names.count; ++i) {
    const int a = mesh.find(names[i]);
    if (a < 0) {
      why = first_of(why, refusal{code::axis_not_in_mesh, i, mesh.axes.count});
    } else if ((used >> a & 1u) != 0) {
      why = first_of(why, refusal{code::axis_used_twice, a});
    } else {
      used |= 1u << a;
      axes.push(a);
    }
  }
  return axes;
}

}  // namespace detail

/// Plans a contraction: (raw → output) ∘ (x · w) ∘ (input → used) + bias.
///
/// Where the weight's cut is not given it is the cheapest, by the bytes of one sample forward and backward: of the axes that
/// cut the features, the inner ones gather the input and the outer ones reduce the result; ties go to gathering.
constexpr layer_plan plan_contraction(const layout& x, const contraction& what) {
  layer_plan refused;
  const int feature = what.feature < 0 ? x.dims.count + what.feature : what.feature;
  if (feature < 0 || feature + what.kernels.count + 1 != x.dims.count) {
    refused.why = refusal{code::layer_takes_other_dimensions, what.feature < 0 ? 1 : what.feature + what.kernels.count + 1,
                          x.dims.count};
    return refused;
  }
  if (x.dims[feature].extent == dynamic) {
    refused.why = refusal{code::extent_not_static, feature};
    return refused;
  }
  refused.why = what.why;
  if (!refused.why.ok()) return refused;
  if (what.chosen) {
    unsigned used = 0;
    const auto out = detail::found(x.mesh, what.cut_out, used, refused.why);
    const auto in = detail::found(x.mesh, what.cut_in, used, refused.why);
    return refused.why.ok() ? detail::contraction_form(x, what).plan(out, in) : refused;
  }
  const layout sample = detail::of_one_sample(x, feature);
  const detail::contraction_form form(sample, what);
  const auto axes = form.feature_axes();
  int best = axes.count;
  if (axes.count > 0) {
    index_t least = INT64_MAX;
    for (int gathered = axes.count; gathered >= 0; --gathered) {
      static_vector<int, max_axes> out;
      static_vector<int, max_axes> in;
      for (int i = 0; i < axes.count; ++i) (i < axes.count - gathered ? in : out).push(axes[i]);
      const layer_plan p = form.plan(out, in);
      if (!p.why.ok()) continue;
      traffic_value t = traffic_of(p.input, p.used, element::int8);
      t += traffic_of(p.raw, p.output, element::int8);
      t += traffic_of(cotangent(p.used), cotangent(p.input), element::int8);
      t += traffic_of(cotangent(p.output), cotangent(p.raw), element::int8);
      if (t.forward.bytes < least) {
        least = t.forward.bytes;
        best = gathered;
      }
    }
  }
  static_vector<int, max_axes> out;
  static_vector<int, max_axes> in;
  for (int i = 0; i < axes.count; ++i) (i < axes.count - best ? in : out).push(axes[i]);
  return detail::contraction_form(x, what).plan(out, in);
}

}  // namespace tessera
