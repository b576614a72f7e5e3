#pragma once

#include <tessera/operation/contraction_form.hpp>

namespace tessera {

namespace detail {

// One sample: dimensions before the features and dynamic ones behind it have extent 1, so a batch never changes a type.
constexpr layout of_one_sample(layout x, int feature) {
  for (int d = 0; d < x.dims.count; ++d) {
    if (d < feature || x.dims[d].extent == dynamic) x.dims[d].extent = 1;
    if (d < feature && x.dims[d].bounds == learned) x.dims[d].bounds = nullptr;
  }
  return x;
}

// The places of named axes in the mesh; `used` has a bit for each that was named already.
constexpr static_vector<int, max_axes> found(const mesh_value& mesh, const static_vector<text, max_axes>& names, unsigned& used,
                                             refusal& why) {
  static_vector<int, max_axes> axes;
  for (int i = 0; i < names.count; ++i) {
    const int a = mesh.find(names[i]);
    if (a < 0) {
      why = first_of(why, refusal{code::axis_not_in_mesh, names[i], mesh.axes.count});
    } else if ((used >> a & 1u) != 0) {
      why = first_of(why, refusal{code::axis_used_twice, names[i]});
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
  refused.why = what.why;
  if (!refused.why.ok()) return refused;
  const int feature = what.feature < 0 ? x.dims.count + what.feature : what.feature;
  if (feature < 0 || feature + what.kernels.count + 1 != x.dims.count || what.kernels.count > 3) {
    refused.why = refusal{code::layer_takes_other_dimensions, what.feature < 0 ? 1 : what.feature + what.kernels.count + 1,
                          x.dims.count};
    return refused;
  }
  if (x.dims[feature].extent == dynamic) {
    refused.why = refusal{code::extent_not_static, feature};
    return refused;
  }
  for (int d = feature; d < x.dims.count; ++d)
    if (x.dims[d].bounds == learned) {
      refused.why = refusal{code::lengths_not_known, d};
      return refused;
    }
  if (what.out < 0) {
    refused.why = refusal{code::extent_negative, feature, what.out};
    return refused;
  }
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
  if (axes.count > 0 && what.groups == 1) {
    index_t least = INT64_MAX;
    for (int gathered = axes.count; gathered >= 0; --gathered) {
      static_vector<int, max_axes> out;
      static_vector<int, max_axes> in;
      for (int i = 0; i < axes.count; ++i) (i < axes.count - gathered ? in : out).push(axes[i]);
      const layer_plan p = form.plan(out, in);
      if (!p.why.ok()) continue;
      traffic_value t = traffic_of(p.given(), p.used(), element::int8);
      t += traffic_of(p.raw(), p.output(), element::int8);
      t += traffic_of(cotangent(p.used()), cotangent(p.given()), element::int8);
      t += traffic_of(cotangent(p.output()), cotangent(p.raw()), element::int8);
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
