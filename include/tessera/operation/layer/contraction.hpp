#pragma once

#include <tessera/operation/rule/signature.hpp>

namespace tessera::engine {

/// The common part of linear layers and convolutions: a weight [out, in, kernel…] summed over the input's features. A
/// transposed convolution is the adjoint of a convolution of its result, so its weight is [in, out, kernel…]. Experts
/// have a weight each, [experts, in, out].
struct contraction {
  int feature = -1;    ///< the dimension of the features; −1 is the last
  index_t out = 0;     ///< features of the result
  index_t groups = 1;  ///< groups of features that see only each other
  /// how many the input's first dimension has, each with a weight and a bias of its own
  index_t experts = none;
  static_vector<sliding, 8> kernels;  ///< windows of the dimensions behind it
  bool transposed = false;            ///< these are windows of the result
  /// transposed: how much further the result goes on at its end; 0 unless said
  static_vector<index_t, 3> output_padding;
  static_vector<index_t, 3> output_size;  ///< transposed: the extents of the result, where they are given instead
  bool bias = true;
  bool cut_is_set = false;                ///< the weight's cut is given, not the cheapest
  static_vector<text, max_axes> cut_out;  ///< axes that cut the weight's outputs, outermost first
  static_vector<text, max_axes> cut_in;   ///< axes that cut the weight's inputs
  index_t grain_out = 1;                  ///< elements of the outputs that are never split
  bool has_output = false;
  tessera::layout output;  ///< the result's partition, where it is given (extents are filled in)
  /// terms of a half type are rounded to it before they travel, not behind their sum
  bool round_terms = false;
  bool has_element = false;  ///< the weights are stored in one of their own, not that of the input
  tessera::element element{};
  refusal why;  ///< what does not fit in the options themselves

  static constexpr index_t none = -1;
  constexpr bool by_expert() const { return experts >= 0; }
  /// The dimension of the weight that is its inputs', and the one that is its outputs'.
  constexpr int inputs_at() const { return transposed ? 0 : 1; }
  constexpr int outputs_at() const { return by_expert() ? 2 : 1 - inputs_at(); }

  /// Gives each of so many experts weights of its own.
  constexpr void divide_among(index_t count) {
    experts = count;
    if (count < 0) why = first_of(why, refusal{code::extent_negative, 0, count});
  }

  /// The kernel over a dimension of n elements; output padding is less that a transposed one cuts off at the far end.
  constexpr sliding over(int i, index_t n) const {
    sliding s = kernels[i];
    s.after -= padding_of(i, n);
    return s;
  }
  constexpr index_t outputs(int i, index_t n) const {
    return transposed ? over(i, n).spread(n) : kernels[i].outputs(n);
  }
  /// The inputs that an output needs.
  constexpr window needs(int i) const { return transposed ? kernels[i].transposed() : kernels[i].needs(); }

  /// Whether the result of n elements has as many, one step for each.
  constexpr bool keeps(int i, index_t n) const { return over(i, n).keeps(); }

  /// Refuses a kernel that does not fit a dimension of n elements.
  constexpr refusal check(int i, int dimension, index_t n) const {
    const sliding& s = kernels[i];
    if (!transposed) return s.check(dimension, n);
    if (const refusal r = s.check(dimension, dynamic); !r.ok()) return r;
    if (n == dynamic && !output_size.empty()) return refusal{code::extent_not_static, dimension};
    if (n != dynamic && n >= INT64_MAX / 4 / s.stride) return refusal{code::count_overflows, dimension, n};
    if (!output_size.empty() && output_size[i] < 1)
      return refusal{code::padding_leaves_nothing, dimension, n, output_size[i]};
    const index_t more = padding_of(i, n);
    const index_t bound = detail::larger(s.stride, s.dilation);
    if (more < 0 || more >= bound) return refusal{code::output_padding_too_large, dimension, more, bound};
    if (n != dynamic && (n < 1 || outputs(i, n) < 1))
      return refusal{code::padding_leaves_nothing, dimension, n, outputs(i, n)};
    return {};
  }

  /// Pads so that the result has the extents of the input, an odd zero at the end.
  constexpr void keep_extents() {
    for (int i = 0; i < kernels.count; ++i) {
      sliding& s = kernels[i];
      if (!s.check(feature + 1 + i, dynamic).ok()) continue;  // which the plan refuses
      if (s.stride != 1 && why.ok()) why = refusal{code::same_padding_steps, feature + 1 + i, s.stride};
      s.before = (s.reach() - 1) / 2;
      s.after = s.reach() - 1 - s.before;
    }
  }

 private:
  constexpr index_t padding_of(int i, index_t n) const {
    if (!output_size.empty()) return output_size[i] - kernels[i].spread(n);
    return output_padding.empty() ? 0 : output_padding[i];
  }
};

}  // namespace tessera::engine
