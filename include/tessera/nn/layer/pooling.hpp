#pragma once

#include <tessera/nn/call/bound_layer.hpp>
#include <tessera/operation/layer/adaptive_pooling.hpp>
#include <tessera/operation/layer/layers.hpp>

namespace tessera::nn::engine {

/// A pooling's result, and of a maximum the global index of each, flat over the pooled dimensions.
struct pooled {
  at::Tensor values;
  at::Tensor indices;
};

/// pool ∘ (blocks → haloed): of a maximum the lowest value lies outside the tensor, of an average 0.
pooled forward_pooling(const bound_layer& b, const pooling& layer, const at::Tensor& input, bool indices = false);

/// max ∘ (blocks → what the outputs cover).
pooled forward_pooling(const bound_layer& b, const adaptive_max_pool_description& layer, const at::Tensor& input,
                       bool indices = false);

}  // namespace tessera::nn::engine

#ifndef TESSERA_COMPILED
#include <tessera/nn/layer/pooling_impl.hpp>
#endif
