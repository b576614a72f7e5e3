#pragma once

#include <tessera/generated/topology.hpp>
#include <tessera/meta/integer.hpp>

#include <initializer_list>

namespace tessera {

/// The boundary of a dimension: elements beyond its edge are neither held nor moved, the local operation fills them in.
///
///  zero       a constant: 0, or whatever the operation takes for outside
///  reflect    x[−i] = x[i], x[n−1+i] = x[n−1−i]
///  replicate  x[−i] = x[0], x[n−1+i] = x[n−1]
///  periodic   x[i] = x[i mod n]
///  inward     no element is beyond it: a window that would reach further is moved inside. Of neighbourhood attention.
enum class boundary : signed char { zero, reflect, replicate, periodic, inward };

/// A window: output y needs the inputs [⌊(a·y + b)/c⌋, ⌊(a·y + b2)/c⌋ + 1).
///
/// Convolution and pooling: a = stride, b = −padding, b2 = dilation·(kernel − 1) − padding, c = 1. Transposed
/// convolution: a = 1, b = padding − dilation·(kernel − 1) + stride − 1, b2 = padding, c = stride. Slice: a = c = 1, b
/// = b2 = its begin. Inputs beyond the edge are the image of the boundary. A composed window reaches no more than what
/// its outputs compute from: all but the first `unreached_before` and the last `unreached_after` elements.
struct window {
  index_t a = 0;
  index_t b = 0;
  index_t b2 = 0;
  index_t c = 0;
  index_t unreached_before = 0;
  index_t unreached_after = 0;
  boundary edge = boundary::zero;

  constexpr index_t first(index_t y) const { return detail::floor_divide(a * y + b, c); }
  constexpr index_t last(index_t y) const { return detail::floor_divide(a * y + b2, c); }

  friend constexpr bool operator==(const window&, const window&) = default;
};

/// A kernel that slides over one dimension: its extent, its step, the padding at both ends and the distance of its
/// taps.
struct sliding {
  index_t kernel = 0;
  index_t stride = 0;
  index_t before = 0;
  index_t after = 0;
  index_t dilation = 0;
  boundary edge = boundary::zero;
  bool crops = false;  ///< negative padding cuts off: a slice

  /// Whether what follows from its numbers does not overflow.
  constexpr bool countable() const {
    constexpr index_t far = index_t{1} << 31;
    const index_t wide = crops ? INT64_MAX / 4 : far;
    return kernel < far && stride < far && dilation < far && before < wide && after < wide && -wide < before &&
           -wide < after;
  }

  constexpr index_t reach() const { return dilation * (kernel - 1) + 1; }

  /// The inputs that its outputs need.
  constexpr window needs() const { return {stride, -before, dilation * (kernel - 1) - before, 1, 0, 0, edge}; }

  /// How many outputs n inputs give: ⌊(n + before + after − reach)/stride⌋ + 1.
  constexpr index_t outputs(index_t n) const {
    return n == dynamic ? dynamic : detail::floor_divide(n + before + after - reach(), stride) + 1;
  }

  /// Whether the window gives one output for each input, whatever their number. Outputs are then cut as inputs are,
  /// also under its transpose.
  constexpr bool keeps() const { return stride == 1 && countable() && before + after + 1 == reach(); }

  /// The inputs that the outputs of its transpose need, which may be none of them, as under a kernel shorter than its
  /// stride.
  constexpr window transposed() const {
    return {1, before - dilation * (kernel - 1) + stride - 1, before, stride, 0, 0, edge};
  }

  /// How many outputs its transpose makes of n inputs: (n − 1)·stride + reach − before − after.
  constexpr index_t spread(index_t n) const {
    return n == dynamic ? dynamic : (n - 1) * stride + reach() - before - after;
  }

  /// Refuses a window without extent, one that the padded tensor cannot hold, and a reflection of more than there is.
  constexpr refusal check(int dimension, index_t n) const {
    if (!countable()) return refusal{code::window_too_large, dimension, kernel, stride, dilation};
    if (kernel < 1 || stride < 1 || dilation < 1 || (!crops && (before < 0 || after < 0)))
      return refusal{code::window_not_positive, dimension, kernel, stride, dilation};
    if (edge == boundary::inward) return refusal{code::windows_move_inside, dimension};
    if (n > INT64_MAX / 4) return refusal{code::count_overflows, dimension, n};
    if (crops && n != dynamic && n + before + after < 0)
      return refusal{code::range_outside, dimension, n, -before, n + after};
    if (!crops && n != dynamic && n + before + after < reach())
      return refusal{code::kernel_too_wide, dimension, n, before, kernel};
    if (n != dynamic && edge == boundary::reflect && detail::larger(before, after) >= n)
      return refusal{code::reflection_too_wide, dimension, n, detail::larger(before, after)};
    if (n == 0 && edge != boundary::zero && before + after > 0)
      return refusal{code::nothing_to_pad_from, dimension, before, after};
    return {};
  }
};

namespace engine {

/// The composition of two windows: the inputs of `first` that the outputs of `second` need. `middle` is the extent
/// between them, `n` the extent of the inputs. Elements beyond the middle's edge are padding again and never computed.
///
/// a = a₁·a₂, b = a₁·b₂ + b₁·c₂, b2 = a₁·b2₂ + b2₁·c₂, c = c₁·c₂, reaching from the first input of the first element
/// that is reached to the last input of the last. Exact where a₁ = 1 or c₂ = 1, since a step of more than one does not
/// pass a rounding; zero edges compose, and periodic ones where a₁·middle = c₁·n. `composes` says whether.
constexpr bool composes(const window& first, const window& second, index_t middle, index_t n) {
  constexpr index_t far = index_t{1} << 30;  // what is composed of less can be counted
  for (index_t number : {first.a, first.b, first.b2, first.c, second.a, second.b, second.b2, second.c})
    if (number >= far || -far >= number) return false;
  if (first.edge != second.edge || (first.a != 1 && second.c != 1) || first.a < 1 || second.a < 1) return false;
  return first.edge == boundary::zero ||
         (first.edge == boundary::periodic && (n == dynamic || first.a * middle == first.c * n));
}
constexpr window composed(const window& first, const window& second, index_t middle, index_t n) {
  window w{first.a * second.a,
           first.a * second.b + first.b * second.c,
           first.a * second.b2 + first.b2 * second.c,
           first.c * second.c,
           0,
           0,
           first.edge};
  if (first.edge == boundary::zero && n != dynamic && middle != dynamic) {
    w.unreached_before = detail::clamped(first.first(second.unreached_before), 0, n);
    w.unreached_after = n - detail::clamped(first.last(middle - second.unreached_after - 1) + 1, 0, n);
  }
  return w;
}

/// The window that is left of a composed one after its first step: composed(first, quotient) = whole. `divides` says
/// whether there is one.
constexpr window quotient(const window& whole, const window& first, index_t middle, index_t n) {
  const index_t c = whole.c / first.c;
  window w{whole.a / first.a, (whole.b - first.b * c) / first.a, (whole.b2 - first.b2 * c) / first.a, c, 0, 0,
           whole.edge};
  if (whole.edge == boundary::zero) {
    if (whole.unreached_before > 0)
      w.unreached_before =
          detail::clamped(detail::ceil_divide(first.c * whole.unreached_before - first.b, first.a), 0, middle);
    if (whole.unreached_after > 0)
      w.unreached_after =
          middle -
          detail::clamped(detail::floor_divide(first.c * (n - whole.unreached_after) - first.b2 - 1, first.a) + 1, 0,
                          middle);
  }
  return w;
}
constexpr bool divides(const window& whole, const window& first, index_t middle, index_t n) {
  if (whole.c < 1 || first.c < 1 || first.a < 1 || whole.c % first.c != 0) return false;
  const window second = quotient(whole, first, middle, n);
  return second.b2 >= second.b && composes(first, second, middle, n) && composed(first, second, middle, n) == whole;
}

/// The largest share of a worker's outputs that is computed apart because its windows read a halo, unless a launch says
/// otherwise.
inline constexpr double most_edges = 1.0 / 16;

}  // namespace engine

}  // namespace tessera
