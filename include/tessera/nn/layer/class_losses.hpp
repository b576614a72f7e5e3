#pragma once

#include <tessera/nn/call/call.hpp>
#include <tessera/nn/layer/losses.hpp>
#include <tessera/operation/function/angular_margin.hpp>
#include <tessera/operation/function/linear_cross_entropy.hpp>

namespace tessera::functions {

/// The margin of what a worker holds, after all have told of labels that name no class.
at::Tensor compute(const angular_margin& f, const engine::bound_exchanges& by, const at::Tensor& cosines,
                   const at::Tensor& labels);

}  // namespace tessera::functions

namespace tessera::nn {

/// The mean of all workers' losses. Each scores the classes that it has, or those of them that are sampled.
at::Tensor forward(const call& c, const engine::linear_cross_entropy_description& layer);

}  // namespace tessera::nn

#ifndef TESSERA_COMPILED
#include <tessera/nn/layer/class_losses_impl.hpp>
#endif
