#pragma once

#include <tessera/nn/layer/call.hpp>
#include <tessera/operation/function/linear_cross_entropy.hpp>

namespace tessera::nn {

/// The mean of all workers' losses. Each scores the classes that it has, or those of them that are sampled.
at::Tensor forward(const call& c, const engine::linear_cross_entropy_description& layer);

}  // namespace tessera::nn

#ifndef TESSERA_COMPILED
#include <tessera/nn/layer/linear_cross_entropy_impl.hpp>
#endif
