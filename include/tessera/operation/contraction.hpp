#pragma once

#include <tessera/operation/signature.hpp>

namespace tessera {

/// What linear layers and convolutions have in common: a weight [out, in, kernel…] summed over the input's features.
struct contraction {
  int feature = -1;                     ///< the dimension of the features; −1 is the last
  index_t out = 0;                        ///< features of the result
  index_t groups = 1;                     ///< groups of features that see only each other
  static_vector<sliding, 8> kernels;    ///< windows of the dimensions behind it
  bool bias = true;
  bool chosen = false;                  ///< the weight's cut is given, not the cheapest
  static_vector<text, max_axes> cut_out;  ///< axes that cut the weight's outputs, outermost first
  static_vector<text, max_axes> cut_in;   ///< axes that cut the weight's inputs
  index_t grain_out = 1;                  ///< elements of the outputs that are never split
  bool has_output = false;
  tessera::layout output;               ///< the result's partition, where it is given (extents are filled in)
  bool has_element = false;             ///< the weights are stored in one of their own, not that of the input
  tessera::element element{};
  refusal why;                          ///< what does not fit in the options themselves
};

}  // namespace tessera
