#pragma once

#include <tessera/generated/operation.hpp>
#include <tessera/operation/layer/setting.hpp>
#include <tessera/topology/element.hpp>
#include <tessera/topology/layout.hpp>

namespace tessera::engine {

/// A look-up of rows: what a weight [rows, features] gives for each index, the product with its one-hot row.
struct lookup {
  index_t rows = 0;
  index_t features = 0;
  tessera::element element = tessera::element::float32;  ///< of the weight and the result
  static_vector<text, max_axes> cut_out = {};            ///< axes that cut the features
  static_vector<text, max_axes> cut_in = {};             ///< axes that cut the rows
  bool has_output = false;
  layout output = {};  ///< the result's partition, where it is given (extents are filled in)
  /// the index of a row that begins as zeros and gets no gradient; below 0 from the far end
  setting<index_t> padding = {};
  setting<double> max_norm = {};  ///< rows that are looked up and longer are made as long as this before, in place
  double norm_type = 2;           ///< the p of that norm, infinity too
  bool by_frequency = false;      ///< the gradient of a row is divided by how often it was looked up
  bool frozen = false;            ///< the weight has no gradient
  bool sparse = false;            ///< gradients of rows alone, which are refused
  refusal why = {};               ///< what does not fit in the options themselves

  /// That row, or -1.
  constexpr index_t padding_row() const {
    return !padding.is_set() ? -1 : padding.value() < 0 ? padding.value() + rows : padding.value();
  }
  /// Whether the workers count how often each row is looked up.
  constexpr bool counts() const { return max_norm.is_set() || by_frequency; }

  constexpr refusal check() const {
    if (sparse) return refusal{code::sparse_not_there};
    if (rows < 1 || features < 0) return refusal{code::extent_negative, rows < 1 ? 0 : 1, rows < 1 ? rows : features};
    const index_t row = padding_row();
    if (padding.is_set() && (row < 0 || row >= rows)) return refusal{code::index_out_of_range, padding.value(), rows};
    if (max_norm.is_set() && !(max_norm.value() >= 0)) return refusal{code::max_norm_below_zero};
    return norm_type > 0 ? refusal{} : refusal{code::norm_not_positive};
  }
};

}  // namespace tessera::engine
