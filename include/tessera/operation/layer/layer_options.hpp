#pragma once

#include <tessera/operation/layer/contraction.hpp>
#include <tessera/operation/layer/local_layers.hpp>
#include <tessera/operation/layer/lookup.hpp>
#include <tessera/operation/layer/normalisation.hpp>
#include <tessera/operation/layer/random_layers.hpp>
#include <tessera/operation/plan/routing.hpp>

#include <limits>

namespace tessera::engine {

/// Which keys a query of attention sees, and how they come to it.
struct attention_form {
  bool causal = false;    ///< a query sees the keys up to its own place
  bool streamed = false;  ///< parts of the keys come one after another
  index_t rows = 0;       ///< so many of a part at once, 0 for what the library takes
  index_t heads = 0;      ///< into which the features of all operands are still to be split; 0: they are heads already
  bool slides = false;    ///< a query at i sees the keys of [i − before, i + after] alone
  index_t before = 0;
  index_t after = 0;
  bool added_mask = false;  ///< a mask is of numbers that are added to scores; else of booleans
  double dropped = 0;       ///< with which probability a weight is dropped in training
  static_vector<text, max_axes> over = no_items<text, max_axes>;  ///< axes whose cut of the sequence goes to the heads
  bool chooses = false;  ///< that is so where it moves fewer bytes than to stream along them, too

  /// Whether queries and keys are compared by their places.
  constexpr bool by_place() const { return causal || slides; }
  constexpr refusal check() const {
    if (rows < 0) return refusal{code::rows_not_positive, rows};
    if (slides && (before < 0 || after < 0 || (causal && after > 0)))
      return refusal{code::window_looks_away, before, after};
    if (!(dropped >= 0 && dropped <= 1)) return refusal{code::no_probability};
    return {};
  }
};

/// How the classes of a loss are scored, and which of them in training.
struct class_scores {
  double sample_rate = 1;  ///< the share that is drawn beside those of labels
  bool cosines = false;    ///< scores are scaled cosines, the label's with a margin of its angle; else products
  double margin = 0.5;
  double scale = 64;
  bool easy = false;  ///< no margin where a cosine is below 0

  constexpr bool samples() const { return sample_rate < 1; }
  constexpr refusal check() const {
    constexpr double pi = 3.141592653589793;
    if (!(sample_rate >= 0 && sample_rate <= 1)) return refusal{code::no_probability};
    const bool fits = margin >= 0 && margin <= pi && scale > 0 && scale < std::numeric_limits<double>::infinity();
    return fits ? refusal{} : refusal{code::loss_option_out_of_range};
  }
};

}  // namespace tessera::engine

namespace tessera::detail {

/// The values of a layer's options; `weights.why` is the first mistake in them.
struct layer_options {
  static_vector<sliding, 8> kernels;
  bool has_stride = false;
  bool same = false;  ///< padding that keeps the extents
  contraction weights;
  pooling pool;
  normalisation norm;
  upsampling up;
  dropout_description drop;
  rrelu_description slopes;
  attention_form attends;
  lookup look;
  class_scores scores;
  routing routes;
};

// A fraction as the double next to it.
constexpr double fraction(index_t numerator, index_t denominator, refusal& why) {
  if (denominator > 0) return static_cast<double>(numerator) / static_cast<double>(denominator);
  why = first_of(why, refusal{code::fraction_without_divisor, numerator, denominator});
  return 0;
}

// One value for all dimensions, or one each; `at(i)` is the i-th.
template <index_t... Values>
struct values {
  static constexpr int count = sizeof...(Values);
  static constexpr index_t at(int i) {
    const index_t all[]{Values..., 0};
    return all[count == 1 ? 0 : i];
  }
  static constexpr bool fit(layer_options& o, int each) {
    const int wanted = o.kernels.count * each;
    if (count == 1 || count == wanted) return true;
    if (o.weights.why.ok()) o.weights.why = refusal{code::option_of_other_dimensions, wanted, count};
    return false;
  }
};

}  // namespace tessera::detail
