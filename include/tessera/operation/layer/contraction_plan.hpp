#pragma once

#include <tessera/operation/layer/contraction_planner.hpp>
#include <tessera/operation/rule/axes_by_name.hpp>

namespace tessera {

namespace detail {

// One sample: dimensions before the features have extent 1, dynamic ones behind it many elements. So neither a batch
// nor what run time knows changes how a weight is stored.
constexpr layout of_one_sample(layout x, int feature) {
  constexpr index_t many = 1024;
  for (int d = 0; d < x.dims.count; ++d) {
    dimension& dim = x.dims[d];
    if (d >= feature && dim.has_static_extent()) continue;
    dim.extent = d < feature ? 1 : many;
    dim.tag = unnamed;
    dim.bounds = nullptr;
  }
  return x;
}

// What goes both ways for a layer, in bytes.
constexpr index_t moved(const layer_plan& p, element e) {
  traffic_value t = traffic_of(p.given(), p.used(), e);
  t += traffic_of(p.raw(), p.output(), p.travels_in(0, e));
  return capped_sum(t.forward.bytes, t.backward.bytes);
}

// The way to share a contraction that moves least; `as` where what is given leaves one.
constexpr sharing cheapest(const contraction_planner& form, const contraction& layer, element e, const sharing& as) {
  static_vector<sharing, max_axes + 1> cuts;
  if (layer.cut_is_set) {
    cuts.push(as);
  } else {
    const auto axes = form.feature_axes();
    for (int gathered = axes.count; gathered >= (layer.groups == 1 ? 0 : axes.count); --gathered) {
      sharing s;
      for (int i = 0; i < axes.count; ++i) (i < axes.count - gathered ? s.cut_in : s.cut_out).push(axes[i]);
      cuts.push(s);
    }
  }
  sharing best = cuts[0];
  const unsigned may = form.spreading();
  if (cuts.count == 1 && may == 0) return best;
  index_t least = INT64_MAX;
  for (sharing s : cuts) do {
      const layer_plan p = form.plan(s);
      if (const index_t all = p.why.ok() ? moved(p, e) : INT64_MAX; all < least) {
        least = all;
        best = s;
      }
      s.spread = (s.spread - may) & may;  // the next of its subsets
    } while (s.spread != 0);
  return best;
}

}  // namespace detail

namespace engine {

/// Plans a contraction: (raw → output) ∘ (x · w) ∘ (input → used) + bias.
///
/// A weight's cut that is not given is the cheapest, by the bytes of one sample forward and backward. Of the axes that
/// cut the features, inner ones gather the input and outer ones reduce the result; ties go to gathering. Each cut
/// dimension of a transposed convolution likewise takes the cheaper way: a halo of the input, or a sum of the result's
/// terms. Ties go to the halo.
constexpr layer_plan plan_of(const contraction& layer, const tensor_value& in) {
  const layout& x = in.layout;
  layer_plan refused;
  refused.why = layer.why;
  if (!refused.why.ok()) return refused;
  const int feature = layer.feature < 0 ? x.dims.count + layer.feature : layer.feature;
  const int least = layer.by_expert() ? 1 : 0;  // dimensions before the features
  if (feature < least || feature + layer.kernels.count + 1 != x.dims.count || layer.kernels.count > 3) {
    refused.why = refusal{code::layer_takes_other_dimensions,
                          layer.feature < 0 ? least + 1 : layer.feature + layer.kernels.count + 1, x.dims.count};
    return refused;
  }
  // to cut the weight: nothing is counted
  const bool one_way = !layer.transposed && (layer.cut_is_set || layer.groups > 1 || x.levels(feature) == 0);
  for (int d = 0; d < x.dims.count; ++d) {
    const bool kept = one_way && d > feature && layer.keeps(d - feature - 1, x.dims[d].extent);
    if (d == feature && x.dims[d].extent == dynamic) refused.why = refusal{code::extent_not_static, d};
    else if (d >= feature && !kept && x.dims[d].bounds == learned) refused.why = refusal{code::lengths_not_known, d};
    if (!refused.why.ok()) return refused;
  }
  if (layer.by_expert()) refused.why = detail::check_experts(x, layer.experts);
  if (!refused.why.ok()) return refused;
  if (layer.out < 0) {
    refused.why = refusal{code::extent_negative, feature, layer.out};
    return refused;
  }
  detail::sharing shared;
  if (layer.cut_is_set) {
    unsigned used = 0;
    shared.cut_out = detail::found(x.mesh, layer.cut_out, used, refused.why);
    shared.cut_in = detail::found(x.mesh, layer.cut_in, used, refused.why);
    if (!refused.why.ok()) return refused;
  }
  const layout sample = detail::of_one_sample(x, feature);
  return detail::contraction_planner(x, layer).plan(
      detail::cheapest(detail::contraction_planner(sample, layer), layer, in.element, shared));
}

}  // namespace engine

}  // namespace tessera
