#pragma once

#include <tessera/operation/plan_operation.hpp>

namespace tessera {

/// The eps that stands for the distance of 1 from the next number of the element.
inline constexpr double eps_of_element = -1;

/// y = (x − mean) / √(variance + eps) · weight + bias over groups of elements: those of a channel, or those that share all but the last
/// dimensions. A root mean square has no mean.
struct normalisation {
  enum class kind : signed char { batch, layer, rms };

  kind what = kind::batch;
  int last = 1;             ///< layer, rms: how many dimensions a group has
  double eps = 1e-5;
  bool weight = true;
  bool bias = true;         ///< none without a weight
  bool tracked = true;      ///< batch: keeps running statistics, which it uses where it does not train
  bool cumulative = false;  ///< batch: running statistics are means over all calls
  double momentum = 0.1;    ///< batch: what a call counts in running statistics
  refusal why;              ///< what does not fit in the options themselves

  /// Whether dimension d of a tensor of so many is one of a group.
  constexpr bool over(int d, int dims) const { return what == kind::batch ? d != 1 : d >= dims - last; }
  constexpr bool keeps() const { return what == kind::batch && tracked; }
  /// How many numbers a part of a group sends: the sum of squares from its mean, and that mean.
  constexpr index_t sent() const { return what == kind::rms ? 1 : 2; }
};

namespace detail {

constexpr refusal check_normalisation(const tensor_value& x, const normalisation& what) {
  const int dims = x.layout.dims.count;
  const bool batch = what.what == normalisation::kind::batch;
  const int least = batch ? 2 : what.last;
  const int most = batch ? 5 : max_dimensions - 1;
  if (!what.why.ok()) return what.why;
  if (what.last < 1) return refusal{code::dimension_not_there, what.last, dims};
  if (dims < least || dims > most) return refusal{code::layer_takes_other_dimensions, clamp(dims, least, most), dims};
  if (!(what.eps >= 0) && !(what.eps == eps_of_element && what.what == normalisation::kind::rms)) return refusal{code::eps_below_zero};
  if (!has_cotangent(x.element) || is_complex(x.element)) return refusal{code::no_function_of_element, static_cast<int>(x.element)};
  for (int d = 0; d < dims; ++d)
    if (what.over(d, dims) && x.layout.levels(d) > 0 && !x.layout.dims[d].tiles()) return refusal{code::haloed_summed, 0, d};
  return {};
}

// The parts of groups over the workers that share them: behind one another in a first dimension, each worker with what it has.
constexpr layout parts_of_groups(const layout& x, const normalisation& what) {
  layout parts;
  parts.mesh = x.mesh;
  parts.roles = x.roles;
  dimension sent;
  sent.extent = what.sent();
  parts.dims.push(sent);
  for (int d = 0; d < x.dims.count; ++d) {
    dimension one;
    one.extent = 1;
    parts.dims.push(what.over(d, x.dims.count) ? one : x.dims[d]);
  }
  signed char level = 0;
  for (int a = 0; a < parts.roles.count; ++a) {
    axis_role& r = parts.roles[a];
    if (r.kind != role::cut) continue;
    if (!what.over(r.dimension, x.dims.count)) {
      ++r.dimension;
      continue;
    }
    r = {role::cut, 0, level++};
    parts.dims[0].extent *= x.mesh.axes[a].extent;
  }
  return parts;
}

// What every worker knows of groups once parts are gathered.
constexpr layout all_parts(layout parts) {
  for (axis_role& r : parts.roles)
    if (r.kind == role::cut && r.dimension == 0) r = {};
  return parts;
}

// What it holds: LibTorch's own kernels keep what they read and the numbers of groups; where groups are cut all is done in double.
constexpr void hold_normalisation(layer_plan& p, const tensor_value& x, const normalisation& what) {
  const bool cut = p.exchanges() > 0;
  const bool centred = what.what != normalisation::kind::rms;
  const bool scales_all = what.weight && what.what != normalisation::kind::batch;  // the scale of a group by the weight of an element
  const bool wide = x.element == element::float64;
  p.holds = footprint::saving(!cut || (!centred && wide), 0xff);
  if (!cut) {
    const layout groups = one_along(x.layout, [&](int d) { return what.over(d, x.layout.dims.count); });
    for (int i = 0; i < 1 + centred; ++i) p.make(groups, x.element);
    if (scales_all && !centred) p.remember(x.layout, x.element);
    p.holds.scratch = !centred;
    p.holds.returning = centred ? 0 : 3;
    return;
  }
  // The distances from a part's mean and from that of all, or what they are without a mean; what each element is scaled by.
  const int kept = (centred ? 2 : wide ? 0 : 1) + scales_all;
  for (int i = 0; i < kept; ++i) p.remember(x.layout, element::float64);
  p.holds.scratch = wide ? 2 : 3 * bytes_of(element::float64) / bytes_of(x.element);
}

}  // namespace detail

/// Plans a normalisation. Of a group that is cut each worker sends what it has: its mean and the squares from it, of which all then make
/// those of the whole; sums of squares would lose what a large mean leaves of them.
constexpr layer_plan plan_normalisation(const tensor_value& in, const normalisation& what) {
  const layout& x = in.layout;
  const int dims = x.dims.count;
  if (const refusal r = detail::check_normalisation(in, what); !r.ok()) return refused_layer(r);
  signature s;
  s.operands.push(letters_of(dims));
  s.result = s.operands[0];
  letters of;
  for (int d = 0; d < dims; ++d)
    if (what.over(d, dims) != (what.what == normalisation::kind::batch)) of.push(s.result[d]);
  if (what.weight) s.operands.push(of);
  if (what.weight && what.bias) s.operands.push(of);
  const own_parameter weight{"weight", init::ones()};
  const own_parameter bias{"bias", init::zeros()};
  layer_plan p = s.operands.count == 1   ? plan_operation(s, x)
                 : s.operands.count == 2 ? plan_operation(s, x, weight)
                                         : plan_operation(s, x, weight, bias);
  if (!p.why.ok()) return p;
  const layout parts = detail::parts_of_groups(x, what);
  if (parts.dims[0].extent > what.sent()) p.exchange(parts, detail::all_parts(parts), element::float64);
  detail::hold_normalisation(p, in, what);
  if (!what.keeps()) return p;
  layout channels;
  if (p.why = detail::meet_parameter(x, s.result, of, channels); !p.why.ok()) return p;
  p.keep({"running_mean", stored_form(channels), init::zeros(), in.element});
  p.keep({"running_var", stored_form(channels), init::ones(), in.element});
  p.keep({"num_batches_tracked", one_number(x.mesh), init::zeros(), element::int64});
  return p;
}

namespace nn {

/// `batch_norm` with options that are values.
struct batch_norm_layer {
  static constexpr const char* name = "batch_norm";
  double eps = 1e-5;
  double momentum = 0.1;
  bool cumulative = false;
  bool affine = true;
  bool tracked = true;

  constexpr normalisation what() const {
    return {normalisation::kind::batch, 1, eps, affine, affine, tracked, cumulative, momentum, {}};
  }
  constexpr layer_plan plan(const tensor_value& x) const { return plan_normalisation(x, what()); }
};

/// `layer_norm` with options that are values.
struct layer_norm_layer {
  static constexpr const char* name = "layer_norm";
  int last = 1;
  double eps = 1e-5;
  bool affine = true;
  bool bias = true;

  constexpr normalisation what() const { return {normalisation::kind::layer, last, eps, affine, bias, false, false, 0, {}}; }
  constexpr layer_plan plan(const tensor_value& x) const { return plan_normalisation(x, what()); }
};

/// `rms_norm` with options that are values.
struct rms_norm_layer {
  static constexpr const char* name = "rms_norm";
  int last = 1;
  double eps = eps_of_element;
  bool affine = true;

  constexpr normalisation what() const { return {normalisation::kind::rms, last, eps, affine, false, false, false, 0, {}}; }
  constexpr layer_plan plan(const tensor_value& x) const { return plan_normalisation(x, what()); }
};

}  // namespace nn

}  // namespace tessera
