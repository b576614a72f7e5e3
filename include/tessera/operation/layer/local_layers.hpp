#pragma once

#include <tessera/operation/plan/function.hpp>
#include <tessera/operation/plan/plan_operation.hpp>
#include <tessera/operation/window/interpolation.hpp>

namespace tessera {

namespace detail {

// The plan of a local operation on one operand, which comes as it is used unless said.
constexpr layer_plan local(const layout& used, const signature& op, const layout& given) {
  static_vector<operand, 4> one = no_items<operand, 4>;
  one.push({used, false});
  return one_operation(given, used, op, one);
}
constexpr layer_plan local(const layout& x, const signature& op) { return local(x, op, x); }

}  // namespace detail

namespace engine {

/// Plans an operation on single elements; a linear one passes terms, a non-linear one refuses them.
constexpr layer_plan plan_elementwise(const layout& x, linearity kind = linearity::nonlinear) {
  signature s;
  s.kind = kind;
  s.operands.push(letters_of(x.dims.count));
  s.result = s.operands[0];
  return detail::local(x, s);
}

/// The operation of a pooling on each window of the dimensions behind the first two.
struct pooling {
  enum class kind : signed char { max, average };

  static_vector<sliding, 8> kernels;
  kind is = kind::max;
  bool ceil_mode = false;      ///< a last window that only begins inside the tensor or its padding counts too
  bool counts_padding = true;  ///< average: padding counts into the divisor, as far as it was asked for
  index_t divisor = 0;         ///< average: the divisor, where it is given
  refusal why;                 ///< what does not fit in the options themselves

  /// The kernel over a dimension of n elements; ceil_mode is padding at the far end.
  constexpr sliding over(int i, index_t n) const {
    sliding s = kernels[i];
    if (!ceil_mode || n == dynamic) return s;
    const index_t room = n + s.before + s.after - s.reach();
    index_t outputs = detail::ceil_divide(room, s.stride) + 1;
    if ((outputs - 1) * s.stride >= n + s.before) --outputs;
    s.after = detail::larger(s.after, (outputs - 1) * s.stride + s.reach() - n - s.before);
    return s;
  }
};

/// Plans a pooling over the dimensions behind the first two: pool ∘ (blocks → haloed).
constexpr layer_plan plan_pooling(const layout& x, const pooling& layer) {
  layer_plan p;
  const int count = layer.kernels.count;
  if (p.why = layer.why; !p.why.ok()) return p;
  if (x.dims.count != count + 2 || count < 1 || count > 3) {
    p.why = refusal{code::layer_takes_other_dimensions, count + 2, x.dims.count};
    return p;
  }
  static_vector<sliding, 8> kernels;
  for (int i = 0; i < count; ++i) {
    const sliding& s = layer.kernels[i];
    if (p.why = s.check(2 + i, dynamic); !p.why.ok()) return p;
    if (2 * s.before > s.reach() || 2 * s.after > s.reach()) {
      p.why = refusal{code::padding_wider_than_half_kernel, 2 + i, detail::larger(s.before, s.after), s.kernel};
      return p;
    }
    kernels.push(layer.over(i, x.dims[2 + i].extent));
  }
  layout used = x;
  if (p.why = detail::hold_windows(used, 2, kernels.items, count); !p.why.ok()) return p;
  signature s;
  s.kind = layer.is == pooling::kind::max ? linearity::nonlinear : linearity::additive;
  s.operands.push(letters_of(x.dims.count));
  s.result = s.operands[0];
  for (int i = 0; i < count; ++i) s.special.push({s.result[2 + i], treatment::windowed, kernels[i], 0});
  p = detail::local(used, s, x);
  p.saves = saved_tensors::saving(1);
  p.saves.windows = kernels;
  p.saves.pads = builtin_padding::half;
  if (layer.is == pooling::kind::max) p.make(p.raw(), element::int64);  // where each maximum is
  else p.saves.scratch = p.saves.returning = 1;
  return p;
}

/// The same of numbers that have an order, as a maximum needs, or a mean, as integers have not.
constexpr layer_plan plan_of(const pooling& layer, const tensor_value& x) {
  using functions::engine::takes;
  layer_plan p = plan_pooling(x.layout, layer);
  const bool average = layer.is == pooling::kind::average;
  if (average && !has_cotangent(x.element))
    p.why = first_of(p.why, refusal{code::mean_of_integers, static_cast<int>(x.element)});
  p.why = first_of(p.why, functions::engine::check_takes(average ? takes::reals : takes::ordered, x.element));
  return p;
}

/// The mean over all dimensions behind the first two.
struct global_avg_pool_description {};

/// Plans it, each of these dimensions of one element then: where they are cut workers have terms of the mean, which are
/// summed.
constexpr layer_plan plan_of(const global_avg_pool_description&, const tensor_value& x) {
  const int dims = x.layout.dims.count;
  if (dims < 3) return refused_layer(refusal{code::layer_takes_other_dimensions, 3, dims});
  if (!has_cotangent(x.element)) return refused_layer(refusal{code::mean_of_integers, static_cast<int>(x.element)});
  signature s;
  s.kind = linearity::additive;
  s.operands.push(letters_of(dims));
  for (int d = 0; d < dims; ++d) {
    s.result.push(static_cast<char>((d < 2 ? 'a' : 'A') + d));
    if (d >= 2) s = s.added(s.result[d], 1);
  }
  static_vector<operand, 4> one = no_items<operand, 4>;
  one.push({x.layout, false});
  const inferred terms = infer(s, one);
  layout whole = terms.layout;
  for (int a = 0; a < whole.placements.count; ++a)
    if (x.layout.placements[a].kind == placement::cut && whole.placements[a].kind == placement::partial)
      whole.placements[a] = {};
  layer_plan p;
  p.why = terms.why;
  p.add_input(x.layout);
  p.add_output(terms.layout, whole);
  p.saves = saved_tensors::saving(0);
  p.saves.scratch = 1;
  return p;
}

/// Plans an upsampling: interpolation ∘ (blocks → what the outputs' parts need).
constexpr layer_plan plan_of(const upsampling& layer, const tensor_value& in, linearity kind = linearity::additive) {
  const layout& x = in.layout;
  const int count = layer.count();
  if (const refusal r = layer.check(); !r.ok()) return refused_layer(r);
  if (count < 1 || x.dims.count != count + 2)
    return refused_layer(refusal{code::layer_takes_other_dimensions, count + 2, x.dims.count});
  if (!has_cotangent(in.element) || is_complex(in.element))
    return refused_layer(refusal{code::no_function_of_element, static_cast<int>(in.element)});
  layout used = x;
  signature s;
  s.kind = kind;
  s.operands.push(letters_of(x.dims.count));
  s.result = s.operands[0];
  for (int i = 0; i < count; ++i) {
    const int d = 2 + i;
    const index_t n = x.dims[d].extent;
    if (const refusal r = layer.check(i, n); !r.ok()) return refused_layer(r);
    const resampling made = layer.over(i, n);
    const index_t m = layer.outputs(i, n);
    if (const refusal r = detail::hold_window(used, d, made.reads(), m, layer.keeps(i)); !r.ok())
      return refused_layer(r);
    s.special.push({s.result[d], treatment::resampled, {}, 0, 0, m, made.reads()});
  }
  layer_plan p = detail::local(used, s, x);
  p.saves = saved_tensors::saving(0);
  return p;
}

/// A kernel of one tap: padding on both sides, or with negative widths a slice.
constexpr sliding padding_kernel(index_t before, index_t after, boundary edge = boundary::zero) {
  sliding s{1, 1, before, after, 1, edge};
  s.crops = true;
  return s;
}

/// A padding or slicing of the last dimensions.
struct pad_description {
  static_vector<sliding, 8> widths;
  refusal why;  ///< what does not fit in the options themselves
};

/// The elements [begin, end) of one dimension; an end below 0 counts from the far end.
struct slice_description {
  int dimension = 0;
  index_t begin = 0;
  index_t end = 0;

  /// The same of a tensor that has the dimension: nothing around what is kept of it and of those behind.
  constexpr pad_description of(const layout& x) const {
    pad_description all;
    for (int d = dimension; d < x.dims.count; ++d) {
      const index_t n = x.dims[d].extent;
      if (d > dimension) all.widths.push(padding_kernel(0, 0));
      else all.widths.push(padding_kernel(-begin, end < 0 ? end : n == dynamic ? 0 : end - n));
    }
    return all;
  }
};

/// Layers without numbers: max(x, 0), all dimensions behind the first as one, and a change of layout.
struct relu_description {};
struct flatten_description {};
struct repartition_description {};

/// Plans a padding or slicing of the last dimensions: what is kept of other workers' parts is moved, the rest filled in
/// here.
constexpr layer_plan plan_of(const pad_description& layer, const tensor_value& in) {
  if (!layer.why.ok()) return refused_layer(layer.why);
  const layout& x = in.layout;
  const static_vector<sliding, 8>& widths = layer.widths;
  layer_plan p;
  const int first = x.dims.count - widths.count;
  if (first < 0) {
    p.why = refusal{code::layer_takes_other_dimensions, widths.count, x.dims.count};
    return p;
  }
  layout used = x;
  if (p.why = detail::hold_windows(used, first, widths.items, widths.count); !p.why.ok()) return p;
  signature s;
  s.kind = linearity::additive;
  s.operands.push(letters_of(x.dims.count));
  s.result = s.operands[0];
  for (int i = 0; i < widths.count; ++i) s.special.push({s.result[first + i], treatment::windowed, widths[i], 0});
  p = detail::local(used, s, x);
  p.saves = saved_tensors::saving(0);
  p.saves.windows = widths;
  if (p.why.ok()) p.why = check_change(x, used);
  return p;
}

/// Plans a slice.
constexpr layer_plan plan_of(const slice_description& layer, const tensor_value& in) {
  const layout& x = in.layout;
  const int dims = x.dims.count;
  if (layer.dimension < 0 || layer.dimension >= dims)
    return refused_layer(refusal{code::dimension_not_there, layer.dimension, dims});
  if (dims - layer.dimension > 8) return refused_layer(refusal{code::list_full, 8});
  const index_t n = x.dims[layer.dimension].extent;
  const index_t end = layer.end >= 0 || n == dynamic ? layer.end : n + layer.end;
  const bool inside = n == dynamic ? layer.end < 0 || layer.begin <= layer.end : layer.begin <= end && end <= n;
  if (layer.begin < 0 || !inside)
    return refused_layer(refusal{code::range_outside, layer.dimension, n, layer.begin, end});
  return plan_of(layer.of(x), in);
}

/// Plans max(x, 0), of numbers that have an order.
constexpr layer_plan plan_of(const relu_description&, const tensor_value& x) {
  layer_plan p = plan_elementwise(x.layout);
  p.saves = saved_tensors::saving(0, 0, 1);
  p.why = first_of(p.why, functions::engine::check_takes(functions::engine::takes::ordered, x.element));
  return p;
}

/// Plans the joining of all dimensions behind the first; a cut of the outermost of them becomes a cut in grains.
constexpr layer_plan plan_of(const flatten_description&, const tensor_value& in) {
  const layout& x = in.layout;
  layer_plan p;
  if (x.dims.count < 2) {
    p.why = refusal{code::layer_takes_other_dimensions, 2, x.dims.count};
    return p;
  }
  signature s;
  s.kind = linearity::additive;
  s.operands.push(letters_of(x.dims.count));
  s.result = named("az");
  for (int d = 1; d < x.dims.count; ++d) s.special.push({s.operands[0][d], treatment::merged, {}, 'z'});
  p = detail::local(x, s);
  p.saves = saved_tensors::viewing();
  return p;
}

/// Plans a change of partition; `to` names covers and placements, the extents are the input's.
constexpr layer_plan plan_repartition(const layout& x, layout to) {
  layer_plan p;
  p.add_input(x);
  if (to.dims.count != x.dims.count) {
    p.why = refusal{code::wrong_number_of_dimensions, to.dims.count, x.dims.count};
    return p;
  }
  for (int d = 0; d < to.dims.count; ++d) {
    to.dims[d].extent = x.dims[d].extent;
    to.dims[d].tag = x.dims[d].tag;
  }
  p.add_output(x, to);
  p.saves = saved_tensors::viewing();
  p.why = first_of(check(to), check_change(x, to));
  return p;
}

}  // namespace engine

}  // namespace tessera
