#pragma once

#include <tessera/operation/layer_plan.hpp>

namespace tessera {

namespace detail {

constexpr layer_plan local(const layout& x, const signature& what) {
  static_vector<operand, 4> one = no_items<operand, 4>;
  one.push({x, false});
  return one_operation(x, what, one);
}

}  // namespace detail

/// Plans an operation on single elements; a linear one passes terms, a non-linear one refuses them.
constexpr layer_plan plan_elementwise(const layout& x, linearity kind = linearity::nonlinear) {
  signature s;
  s.kind = kind;
  s.operands.push(letters_of(x.dims.count));
  s.result = s.operands[0];
  return detail::local(x, s);
}

/// What a pooling does with each window of the dimensions behind the first two.
struct pooling {
  enum class kind : signed char { max, average };

  static_vector<sliding, 8> kernels;
  kind what = kind::max;
  bool ceil_mode = false;       ///< a last window that only begins inside the tensor or its padding counts too
  bool counts_padding = true;   ///< average: padding counts into the divisor, as far as it was asked for
  index_t divisor = 0;          ///< average: the divisor, where it is given
  refusal why;                  ///< what does not fit in the options themselves

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
constexpr layer_plan plan_pooling(const layout& x, const pooling& what) {
  layer_plan p;
  const int count = what.kernels.count;
  if (p.why = what.why; !p.why.ok()) return p;
  if (x.dims.count != count + 2 || count < 1 || count > 3) {
    p.why = refusal{code::layer_takes_other_dimensions, count + 2, x.dims.count};
    return p;
  }
  static_vector<sliding, 8> kernels;
  for (int i = 0; i < count; ++i) {
    const sliding& s = what.kernels[i];
    if (p.why = s.check(2 + i, dynamic); !p.why.ok()) return p;
    if (2 * s.before > s.reach() || 2 * s.after > s.reach()) {
      p.why = refusal{code::padding_wider_than_half_kernel, 2 + i, detail::larger(s.before, s.after), s.kernel};
      return p;
    }
    kernels.push(what.over(i, x.dims[2 + i].extent));
  }
  layout used = x;
  if (p.why = detail::hold_windows(used, 2, kernels.items, count); !p.why.ok()) return p;
  signature s;
  s.kind = what.what == pooling::kind::max ? linearity::nonlinear : linearity::additive;
  s.operands.push(letters_of(x.dims.count));
  s.result = s.operands[0];
  for (int i = 0; i < count; ++i) s.special.push({s.result[2 + i], treatment::windowed, kernels[i], 0});
  p = detail::local(used, s);
  p.input = x;
  return p;
}

/// A kernel of one tap: padding on both sides, or with negative widths a slice.
constexpr sliding widened(index_t before, index_t after, boundary edge = boundary::zero) {
  sliding s{1, 1, before, after, 1, edge};
  s.crops = true;
  return s;
}

/// Plans a padding or slicing of the last dimensions: what is kept of other workers' parts is moved, the rest filled in here.
constexpr layer_plan plan_widened(const layout& x, const static_vector<sliding, 8>& widths) {
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
  p = detail::local(used, s);
  p.input = x;
  if (p.why.ok()) p.why = check_change(p.input, p.used);
  return p;
}

/// Plans the joining of all dimensions behind the first; a cut of the outermost of them becomes a cut in grains.
constexpr layer_plan plan_flatten(const layout& x) {
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
  return detail::local(x, s);
}

/// Plans a change of partition; `to` names covers and meanings, the extents are the input's.
constexpr layer_plan plan_repartition(const layout& x, layout to) {
  layer_plan p;
  p.input = x;
  p.used = x;
  p.raw = x;
  if (to.dims.count != x.dims.count) {
    p.why = refusal{code::wrong_number_of_dimensions, to.dims.count, x.dims.count};
    return p;
  }
  for (int d = 0; d < to.dims.count; ++d) {
    to.dims[d].extent = x.dims[d].extent;
    to.dims[d].tag = x.dims[d].tag;
  }
  p.output = to;
  p.why = first_of(check(to), check_change(x, to));
  return p;
}

}  // namespace tessera
