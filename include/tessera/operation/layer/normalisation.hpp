#pragma once

#include <tessera/operation/layer/setting.hpp>
#include <tessera/operation/plan/plan_described.hpp>
#include <tessera/operation/plan/plan_operation.hpp>
#include <tessera/plan/parts.hpp>

namespace tessera {

namespace engine {

/// The eps that stands for the distance of 1 from the next number of the element.
inline constexpr double eps_of_element = -1;

/// The elements that are normalised together. Either they share all but the last dimensions, or they are of one channel
/// or neighbouring ones, of all samples or one.
struct row_groups {
  bool by_channel = false;
  bool by_sample = false;
  setting<index_t> channels;  ///< by channel: how many groups channels make; each is one unless said
  int last = 0;               ///< otherwise: how many dimensions a group has

  static constexpr row_groups of_channels() { return {true, false, {}, 0}; }
  static constexpr row_groups of_samples(const setting<index_t>& channels = {}) { return {true, true, channels, 0}; }
  static constexpr row_groups of_last(int dims) { return {false, false, {}, dims}; }

  /// Whether a group has all of dimension d of a tensor of so many, or a range of it.
  constexpr bool over(int d, int dims) const { return by_channel ? d > 1 || (d == 0 && !by_sample) : d >= dims - last; }
  constexpr bool over_ranges(int d) const { return channels.is_set() && d == 1; }
  /// Whether parameters have dimension d.
  constexpr bool scaled(int d, int dims) const { return by_channel ? d == 1 : over(d, dims); }
  /// How many of a tensor's channels a group has, where it has a range of them.
  constexpr index_t range(const layout& x) const { return x.dims[1].extent / channels.value(); }
};

/// y = (x − mean) / √(variance + eps) · weight + bias over groups of elements. A root mean square has no mean.
struct normalisation {
  row_groups groups = row_groups::of_channels();
  bool centred = true;  ///< from the mean
  double eps = 1e-5;
  bool weight = true;
  bool bias = true;         ///< none without a weight
  bool tracked = true;      ///< by channel: keeps running statistics, which it uses where it does not train
  bool cumulative = false;  ///< running statistics are means over all calls
  double momentum = 0.1;    ///< what a call counts in running statistics
  refusal why;              ///< what does not fit in the options themselves

  /// How many numbers a part of a group sends: the sum of squares from its mean, and that mean.
  constexpr index_t sent() const { return centred ? 2 : 1; }
  /// Whether running statistics are means over samples.
  constexpr bool averages() const { return tracked && groups.by_sample; }
};

}  // namespace engine

namespace detail {

constexpr refusal check_normalisation(const tensor_value& x, const normalisation& layer) {
  const row_groups& g = layer.groups;
  const int dims = x.layout.dims.count;
  const int least = g.by_channel ? 2 : g.last;
  const int most = g.by_channel ? 5 : max_dimensions - 1;
  if (!layer.why.ok()) return layer.why;
  if (least < 1) return refusal{code::dimension_not_there, g.last, dims};
  if (dims < least || dims > most) return refusal{code::layer_takes_other_dimensions, clamped(dims, least, most), dims};
  if (!(layer.eps >= 0) && !(layer.eps == eps_of_element && !layer.centred)) return refusal{code::eps_below_zero};
  if (!has_cotangent(x.element) || is_complex(x.element))
    return refusal{code::no_function_of_element, static_cast<int>(x.element)};
  if (g.channels.is_set()) {
    const index_t c = x.layout.dims[1].extent;
    if (c == dynamic) return refusal{code::extent_not_static, 1};
    if (g.channels.value() < 1 || c < 1 || c % g.channels.value() != 0)
      return refusal{code::groups_do_not_divide, c, c, g.channels.value()};
  }
  for (int d = 0; d < dims; ++d) {
    const bool summed = g.over(d, dims) || g.over_ranges(d) || (layer.averages() && d == 0);
    if (summed && !x.layout.has_each_once(d)) return refusal{code::haloed_summed, 0, d};
  }
  return {};
}

// Whether no worker has a part of a range of channels.
constexpr bool ranges_whole(const layout& x, const row_groups& g) {
  return x.levels(1) == 0 || splits(x.dims[1], g.range(x), x.part_count(1));
}

// A number for each group: where its elements are, or, of ranges that are cut, on all workers that have some channels.
constexpr layout groups_of(const layout& x, const row_groups& g) {
  if (!g.channels.is_set()) return one_along(x, [&](int d) { return g.over(d, x.dims.count); });
  const bool whole = ranges_whole(x, g);
  layout y = one_along(x, [&](int d) { return g.over(d, x.dims.count) || (g.over_ranges(d) && !whole); });
  if (whole) y.dims[1] = outer_of(x.dims[1], g.range(x));
  else y.dims[1].extent = g.channels.value();
  return y;
}

// The parts of groups over the workers that share them: behind one another in a first dimension, each worker with what
// it has.
constexpr layout parts_of_groups(const layout& x, const row_groups& g, index_t sent) {
  layout parts = groups_of(x, g);
  dimension behind;
  behind.extent = sent;
  signed char level = 0;
  for (int a = 0; a < parts.placements.count; ++a) {
    axis_placement& r = parts.placements[a];
    if (r.kind == placement::cut) ++r.dimension;
    if (r.kind == placement::cut || x.placements[a].kind != placement::cut) continue;
    r = {placement::cut, 0, level++};
    behind.extent *= x.mesh.axes[a].extent;
  }
  const auto each = parts.dims;
  parts.dims = no_items<dimension, max_dimensions>;
  parts.dims.push(behind);
  for (const dimension& d : each) parts.dims.push(d);
  return parts;
}

// The parts of running statistics that are means over samples.
constexpr layout parts_of_means(const layout& x, const row_groups& g) {
  return parts_of_groups(groups_of(x, g), row_groups::of_channels(), 2);
}

// What every worker knows of groups once parts are gathered.
constexpr layout all_parts(layout parts) {
  for (axis_placement& r : parts.placements)
    if (r.kind == placement::cut && r.dimension == 0) r = {};
  return parts;
}

// What it holds: what it reads and the numbers of groups, by LibTorch's own kernels in the operand's element. Where
// groups are cut, or means of their statistics are kept, numbers are double, and half types are computed in float.
constexpr void hold_normalisation(layer_plan& p, const tensor_value& x, const normalisation& layer) {
  const layout groups = groups_of(x.layout, layer.groups);
  // rows are summed apart
  const layout rows = layer.groups.by_channel ? one_along(x.layout, [](int d) { return d >= 2; }) : groups;
  p.saves = saved_tensors::saving(1, 0xff);
  if (p.exchanges() > 0 || layer.averages()) {
    for (int i = 0; i < 1 + layer.centred; ++i) p.make(groups, element::float64);
    const bool half = bytes_of(x.element) < bytes_of(element::float32);
    p.saves.exchanges = false;
    p.saves.scratch = half ? 4 : 0;
    p.saves.returning = half ? 6 : 0;
    p.saves.later = layer.averages();  // LibTorch makes the gradient in two
    p.take(rows, element::float64, layer.averages() ? 6 + 2 * layer.weight : 5);
    index_t of_row = 1;  // of short rows, numbers of them take more than the box that comes later
    for (int d = 2; d < x.layout.dims.count; ++d)
      of_row = capped_product(of_row, larger(1, parts(x.layout, d).largest()));
    if (!layer.averages()) p.take_back(rows, element::float64, 7);
    else if (capped_product(of_row, bytes_of(x.element)) < 96) p.take_back(rows, element::float64, 9);
    if (!layer.groups.by_channel) {  // and what scales the elements of each
      const int dims = x.layout.dims.count;
      const layout scales = one_along(x.layout, [&](int d) { return !layer.groups.over(d, dims); });
      p.take(scales, element::float64, 2);
      p.take_back(scales, element::float64, 3);
    }
    return;
  }
  const bool centred = layer.centred;
  for (int i = 0; i < 1 + centred; ++i) p.make(groups, x.element);
  if (centred) {
    // LibTorch's batch norm makes the operand's gradient in two
    p.saves.returning = layer.groups.by_channel && !layer.groups.channels.is_set();
    if (layer.groups.channels.is_set()) p.take_back(rows, x.element, 2);
    else if (layer.weight && !layer.groups.by_channel) p.take_back(p.weight(0), p.parameter_element(0, x.element), 2);
    return;
  }
  if (layer.weight) p.remember(x.layout, x.element);  // the scale of a group by the weight of an element
  p.take(groups, x.element);
  p.saves.scratch = layer.weight;
  p.saves.returning = 3 + !layer.weight;
}

}  // namespace detail

namespace engine {

/// Plans a normalisation. Each worker sends, of a group that is cut, its mean and its squared distances from that mean;
/// all combine these into the group's. Plain sums of squares would lose what a large mean leaves of them.
constexpr layer_plan plan_of(const normalisation& layer, const tensor_value& in) {
  const layout& x = in.layout;
  const int dims = x.dims.count;
  if (const refusal r = detail::check_normalisation(in, layer); !r.ok()) return refused_layer(r);
  signature s;
  s.operands.push(letters_of(dims));
  s.result = s.operands[0];
  letters of;
  for (int d = 0; d < dims; ++d)
    if (layer.groups.scaled(d, dims)) of.push(s.result[d]);
  if (layer.weight) s.operands.push(of);
  if (layer.weight && layer.bias) s.operands.push(of);
  const own_parameter weight{"weight", init::ones()};
  const own_parameter bias{"bias", init::zeros()};
  layer_plan p = s.operands.count == 1   ? plan_operation(s, x)
                 : s.operands.count == 2 ? plan_operation(s, x, weight)
                                         : plan_operation(s, x, weight, bias);
  if (!p.why.ok()) return p;
  const layout parts = detail::parts_of_groups(x, layer.groups, layer.sent());
  if (parts.dims[0].extent > layer.sent()) p.add_exchange(parts, detail::all_parts(parts), element::float64);
  detail::hold_normalisation(p, in, layer);
  if (!layer.tracked) return p;
  if (layer.averages())
    if (const layout means = detail::parts_of_means(x, layer.groups); means.dims[0].extent > 2)
      p.add_exchange(means, detail::all_parts(means), element::float64, false);
  layout channels;
  if (p.why = detail::meet_parameter(x, s.result, of, channels); !p.why.ok()) return p;
  p.add_buffer({"running_mean", stored_form(channels), init::zeros(), in.element});
  p.add_buffer({"running_var", stored_form(channels), init::ones(), in.element});
  p.add_buffer({"num_batches_tracked", one_number(x), init::zeros(), element::int64});
  return p;
}

}  // namespace engine

namespace nn {

/// `batch_norm` with options that are values.
struct batch_norm_layer {
  static constexpr const char* name = "batch_norm";
  double eps = 1e-5;
  double momentum = 0.1;
  bool cumulative = false;
  bool affine = true;
  bool tracked = true;

  constexpr engine::normalisation description() const {
    return {engine::row_groups::of_channels(), true, eps, affine, affine, tracked, cumulative, momentum, {}};
  }
  constexpr layer_plan plan(const tensor_value& x) const { return engine::planned(description(), x); }
};

/// `group_norm` with options that are values.
struct group_norm_layer {
  static constexpr const char* name = "group_norm";
  index_t groups = 1;
  double eps = 1e-5;
  bool affine = true;

  constexpr engine::normalisation description() const {
    return {engine::row_groups::of_samples(groups), true, eps, affine, true, false, false, 0, {}};
  }
  constexpr layer_plan plan(const tensor_value& x) const { return engine::planned(description(), x); }
};

/// `instance_norm` with options that are values.
struct instance_norm_layer {
  static constexpr const char* name = "instance_norm";
  double eps = 1e-5;
  double momentum = 0.1;
  bool cumulative = false;
  bool affine = false;
  bool tracked = false;

  constexpr engine::normalisation description() const {
    return {engine::row_groups::of_samples(), true, eps, affine, true, tracked, cumulative, momentum, {}};
  }
  constexpr layer_plan plan(const tensor_value& x) const { return engine::planned(description(), x); }
};

/// `layer_norm` with options that are values.
struct layer_norm_layer {
  static constexpr const char* name = "layer_norm";
  int last = 1;
  double eps = 1e-5;
  bool affine = true;
  bool bias = true;

  constexpr engine::normalisation description() const {
    return {engine::row_groups::of_last(last), true, eps, affine, bias, false, false, 0, {}};
  }
  constexpr layer_plan plan(const tensor_value& x) const { return engine::planned(description(), x); }
};

/// `rms_norm` with options that are values.
struct rms_norm_layer {
  static constexpr const char* name = "rms_norm";
  int last = 1;
  double eps = engine::eps_of_element;
  bool affine = true;

  constexpr engine::normalisation description() const {
    return {engine::row_groups::of_last(last), false, eps, affine, false, false, false, 0, {}};
  }
  constexpr layer_plan plan(const tensor_value& x) const { return engine::planned(description(), x); }
};

}  // namespace nn

}  // namespace tessera
