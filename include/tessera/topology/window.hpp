#pragma once

#include <tessera/meta/integer.hpp>
#include <tessera/meta/refusal.hpp>

namespace tessera {

/// What lies beyond the edge of a dimension; nothing of it is held or moved.
enum class boundary : signed char { zero };

/// Which inputs an output needs: output y needs [⌊(a·y + b)/c⌋, ⌊(a·y + b2)/c⌋ + 1).
///
/// Convolution and pooling are a = stride, b = −padding, b2 = dilation·(kernel − 1) − padding, c = 1.
struct window {
  index_t a = 0;
  index_t b = 0;
  index_t b2 = 0;
  index_t c = 0;
  boundary edge = boundary::zero;

  constexpr index_t first(index_t y) const { return detail::floor_divide(a * y + b, c); }
  constexpr index_t last(index_t y) const { return detail::floor_divide(a * y + b2, c); }

  friend constexpr bool operator==(const window&, const window&) = default;
};

/// A kernel that slides over one dimension: its extent, its step, the padding at both ends and the distance of its taps.
struct sliding {
  index_t kernel = 0;
  index_t stride = 0;
  index_t before = 0;
  index_t after = 0;
  index_t dilation = 0;

  constexpr index_t reach() const { return dilation * (kernel - 1) + 1; }

  /// The inputs that its outputs need.
  constexpr window needs() const { return {stride, -before, dilation * (kernel - 1) - before, 1, boundary::zero}; }

  /// How many outputs n inputs give: ⌊(n + before + after − reach)/stride⌋ + 1.
  constexpr index_t outputs(index_t n) const {
    return n == dynamic ? dynamic : detail::floor_divide(n + before + after - reach(), stride) + 1;
  }

  /// Refuses a window without extent, and one that the padded tensor cannot hold.
  constexpr refusal check(int dimension, index_t n) const {
    if (kernel < 1 || stride < 1 || dilation < 1 || before < 0 || after < 0)
      return refusal{code::window_not_positive, dimension, kernel, stride, dilation};
    if (n != dynamic && n + before + after < reach())
      return refusal{code::kernel_wider_than_padded_tensor, dimension, n, before, kernel};
    return {};
  }
};

}  // namespace tessera
