#pragma once

#include <tessera/operation/layer/adaptive_pooling.hpp>
#include <tessera/operation/layer/attention.hpp>
#include <tessera/operation/layer/cast.hpp>
#include <tessera/operation/layer/embedding.hpp>
#include <tessera/operation/layer/layers.hpp>
#include <tessera/operation/layer/normalisation.hpp>
#include <tessera/operation/layer/pixel_shuffle.hpp>
#include <tessera/operation/layer/prelu.hpp>
#include <tessera/operation/layer/projection.hpp>
#include <tessera/operation/layer/rrelu.hpp>
#include <tessera/operation/layer/unfold.hpp>

// Descriptions that say a layer whole: what run time plans and computes of them is in the compiled library.
// clang-format off
#define TESSERA_DESCRIPTIONS(f)                                                                           \
  f(adaptive_maximum) f(attending) f(averaging) f(casting) f(contraction) f(dropping) f(drawn_slopes)     \
  f(flattening) f(folding) f(learned_slope) f(lookup) f(normalisation) f(pooling) f(projection)           \
  f(rectifying) f(shuffling) f(slicing) f(unfolding) f(upsampling) f(widening)
// clang-format on

#ifdef TESSERA_COMPILED
namespace tessera::engine {

#define TESSERA_HELD(description) \
  extern template layer_plan plan_described<description>(const void*, std::span<const tensor_value* const>);
TESSERA_DESCRIPTIONS(TESSERA_HELD)
#undef TESSERA_HELD

}  // namespace tessera::engine
#endif
