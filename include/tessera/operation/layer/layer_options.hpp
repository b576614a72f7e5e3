#pragma once

#include <tessera/operation/layer/contraction.hpp>
#include <tessera/operation/layer/local_layers.hpp>
#include <tessera/operation/layer/lookup.hpp>
#include <tessera/operation/layer/normalisation.hpp>
#include <tessera/operation/layer/random_layers.hpp>

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
  bool causal = false;
  lookup look;
};

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
