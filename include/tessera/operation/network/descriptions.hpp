#pragma once

#include <tessera/operation/attention/attention.hpp>
#include <tessera/operation/attention/neighbourhood_attention.hpp>
#include <tessera/operation/fourier/spectral_conv.hpp>
#include <tessera/operation/function/linear_cross_entropy.hpp>
#include <tessera/operation/layer/adaptive_pooling.hpp>
#include <tessera/operation/layer/cast.hpp>
#include <tessera/operation/layer/embedding.hpp>
#include <tessera/operation/layer/layers.hpp>
#include <tessera/operation/layer/normalisation.hpp>
#include <tessera/operation/layer/pixel_shuffle.hpp>
#include <tessera/operation/layer/prelu.hpp>
#include <tessera/operation/layer/projection.hpp>
#include <tessera/operation/layer/rrelu.hpp>
#include <tessera/operation/layer/unfold.hpp>
#include <tessera/operation/routing/combine.hpp>
#include <tessera/operation/routing/route.hpp>

// Descriptions that say a layer whole: what run time plans and computes of them is in the compiled library.
// clang-format off
#define TESSERA_DESCRIPTIONS(f)                                                                                  \
  f(adaptive_max_pool_description) f(attention_description) f(cast_description) f(row_combining) f(contraction)      \
  f(dropout_description) f(flatten_description) f(fold_description) f(fourier) f(global_avg_pool_description)    \
  f(linear_cross_entropy_description) f(lookup) f(neighbourhood_description) f(normalisation) f(pad_description) \
  f(pixel_shuffle_description) f(pooling) f(prelu_description) f(projection) f(relu_description)                 \
  f(routing) f(rrelu_description) f(slice_description) f(spectral) f(unfold_description) f(upsampling)
// clang-format on

#ifdef TESSERA_COMPILED
namespace tessera::engine {

#define TESSERA_HELD(description) \
  extern template layer_plan plan_described<description>(const void*, std::span<const tensor_value* const>);
TESSERA_DESCRIPTIONS(TESSERA_HELD)
#undef TESSERA_HELD

}  // namespace tessera::engine
#endif
