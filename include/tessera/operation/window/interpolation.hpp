#pragma once

#include <tessera/generated/operation.hpp>
#include <tessera/meta/static_vector.hpp>
#include <tessera/plan/interval.hpp>
#include <tessera/topology/window.hpp>

namespace tessera {

/// The inputs that make an output. `nearest_exact` rounds its place, `nearest` takes the input below it. `linear` takes
/// two in each dimension, LibTorch's linear, bilinear and trilinear; `cubic` takes four, its bicubic (a = −3/4). Of
/// `area` it is the mean of all that the output covers, [⌊y·n/m⌋, ⌈(y + 1)·n/m⌉): LibTorch's adaptive average pooling.
enum class interpolation : signed char { nearest, nearest_exact, linear, cubic, area };

namespace engine {

/// The inputs that an output is made of, beside the one below its place: [−before, after].
struct reach {
  index_t before = 0;
  index_t after = 0;
};
constexpr reach reach_of(interpolation mode) {
  switch (mode) {
    case interpolation::nearest:
    case interpolation::nearest_exact:
    case interpolation::area: return {0, 0};
    case interpolation::linear: return {0, 1};
    case interpolation::cubic: return {1, 2};
  }
  return {};
}

}  // namespace engine

namespace detail {

/// A positive fraction.
struct ratio {
  index_t over = 1;
  index_t under = 1;
};

/// The fraction that a number stands for: its continued fraction, up to the accuracy of numbers or to what windows can
/// count.
constexpr ratio ratio_of(double number) {
  ratio now{1, 0}, before{0, 1};
  double rest = number;
  while (true) {
    const index_t whole = static_cast<index_t>(rest);
    if (whole >= index_t{1} << 31) return now;
    const ratio next{whole * now.over + before.over, whole * now.under + before.under};
    if (next.over >= index_t{1} << 31 || next.under >= index_t{1} << 31) return now;
    before = now;
    now = next;
    const double off = number - static_cast<double>(now.over) / static_cast<double>(now.under);
    if (rest == static_cast<double>(whole) || (off < 0 ? -off : off) <= 4e-16 * number) return now;
    rest = 1 / (rest - static_cast<double>(whole));
  }
}

constexpr ratio in_lowest_terms(ratio r) {
  index_t a = r.over;
  for (index_t b = r.under; b != 0;) {
    const index_t rest = a % b;
    a = b;
    b = rest;
  }
  return {r.over / a, r.under / a};
}

}  // namespace detail

namespace engine {

/// A dimension of n elements resampled to m. Output y stands at the input's place y·n/m from the first edges
/// (`nearest`), at (y + ½)·n/m − ½ with centres on centres, or at y·(n − 1)/(m − 1) with corners aligned. A factor f
/// that is given takes the place of m/n, which its m = ⌊n·f⌋ only rounds.
struct resampling {
  index_t n = 0;
  index_t m = 0;
  double factor = 0;  ///< 0 where m itself counts
  interpolation mode = interpolation::nearest;
  bool align_corners = false;

  /// Whether all is left as it is.
  constexpr bool keeps() const { return n == m && (factor == 0 || factor == 1); }

  /// The inputs that outputs are made of, by exact arithmetic.
  constexpr window exact() const { return widened_by(0); }
  /// The same and `slack()`, so that what LibTorch reads is there.
  constexpr window reads() const { return widened_by(slack()); }

  /// Of an area the inputs that an output covers.
  constexpr interval covers(index_t y) const { return {y * n / m, detail::ceil_divide((y + 1) * n, m)}; }

  /// How many elements LibTorch may read beyond, as it finds places in floating point: none where that is exact.
  constexpr index_t slack() const {
    if (mode == interpolation::area) return 0;
    const detail::ratio r = step();
    const bool power_of_two = (r.under & (r.under - 1)) == 0;
    return power_of_two && n < (index_t{1} << 22) / r.under ? 0 : 1 + n / (index_t{1} << 21);
  }

 private:
  // From the place of an output to that of the next.
  constexpr detail::ratio step() const {
    if (align_corners)
      return n > 1 ? detail::in_lowest_terms({n - 1, detail::larger(m - 1, 1)})
                   : detail::ratio{1, detail::larger(m, 1)};
    if (factor <= 0) return detail::in_lowest_terms({n, m});
    const detail::ratio f = detail::ratio_of(factor);
    return {f.under, f.over};
  }
  constexpr window widened_by(index_t more) const {
    if (mode == interpolation::area) return {n, 0, n - 1, m};
    const auto [over, under] = step();
    const reach r = reach_of(mode);
    window w{over, 0, 0, under};
    if (!align_corners && mode != interpolation::nearest) {
      w.a = 2 * over;
      w.c = 2 * under;
      w.b = mode == interpolation::nearest_exact ? over : over - under;
    }
    w.b2 = w.b + (r.after + more) * w.c;
    w.b -= (r.before + more) * w.c;
    return w;
  }
};

/// The dimensions behind the first two made larger or smaller: by factors, or to sizes.
struct upsampling {
  static_vector<double, 3> factors;  ///< how many elements are made of each, along each dimension
  static_vector<index_t, 3> sizes;   ///< or the extents of the result
  interpolation mode = interpolation::nearest;
  bool align_corners = false;
  refusal why;  ///< what does not fit in the options themselves

  constexpr int count() const { return sizes.empty() ? factors.count : sizes.count; }

  /// The i-th of them, of n elements; of an unknown extent only the factor counts. LibTorch looks at extents alone
  /// where they stay (linear, nearest) and where the nearest neighbours double them.
  constexpr resampling over(int i, index_t n) const {
    if (!sizes.empty()) return {n == dynamic ? 1 : n, n == dynamic ? 1 : sizes[i], 0, mode, align_corners};
    const index_t known = n == dynamic ? 1 : n;
    const index_t m = detail::larger(1, static_cast<index_t>(static_cast<double>(known) * factors[i]));
    const bool by_extents = mode == interpolation::area ||
                            (m == known && (mode == interpolation::nearest || mode == interpolation::linear)) ||
                            (m == 2 * known && mode == interpolation::nearest);
    return {known, m, by_extents && n != dynamic ? 0 : factors[i], mode, align_corners};
  }
  /// How many elements there are then.
  constexpr index_t outputs(int i, index_t n) const {
    if (!sizes.empty()) return sizes[i];
    return n == dynamic ? dynamic : static_cast<index_t>(static_cast<double>(n) * factors[i]);
  }

  /// Whether the i-th of them keeps its elements, however many.
  constexpr bool keeps(int i) const { return sizes.empty() && factors[i] == 1; }

  /// Refuses options that do not go together, a factor that is none, and what is made of nothing, is nothing or cannot
  /// be counted.
  constexpr refusal check() const {
    if (!why.ok()) return why;
    if (mode != interpolation::linear && mode != interpolation::cubic && align_corners)
      return refusal{code::nearest_has_no_corners};
    for (int i = 0; i < factors.count; ++i) {
      constexpr index_t far = index_t{1} << 31;
      const double f = factors[i];
      if (!(f > 0 && f < static_cast<double>(far)))
        return refusal{code::factor_not_positive, 2 + i, f >= static_cast<double>(far) ? far : f > -1 ? 0 : -1};
    }
    return {};
  }
  constexpr refusal check(int i, index_t n) const {
    constexpr index_t far = index_t{1} << 30;
    const bool counts =
        n < far && (!sizes.empty() || n == dynamic || static_cast<double>(n) * factors[i] < static_cast<double>(far));
    const index_t m = counts ? outputs(i, n) : far;
    if (mode == interpolation::area && n == dynamic) return refusal{code::extent_not_static, 2 + i};
    const auto none = [](index_t extent) { return extent != dynamic && extent < 1; };
    return none(n) || none(m) || m >= far ? refusal{code::nothing_to_resample, 2 + i, n, m} : refusal{};
  }
};

}  // namespace engine

}  // namespace tessera
