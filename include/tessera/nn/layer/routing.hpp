#pragma once

#include <tessera/nn/call/call.hpp>
#include <tessera/operation/routing/combine.hpp>
#include <tessera/operation/routing/route.hpp>
#include <tessera/operation/routing/routing_losses.hpp>
#include <tessera/tensor/functions.hpp>

namespace tessera::functions {

/// Of this worker's rows, added to those of all others.
at::Tensor compute(const load_balance_loss& f, const engine::bound_exchanges& by, const at::Tensor& scores,
                   const at::Tensor& chosen);
at::Tensor compute(const router_z_loss& f, const engine::bound_exchanges& by, const at::Tensor& scores);

}  // namespace tessera::functions

namespace tessera::nn {

/// This worker's rows to the places of their experts, and the slots of its own experts.
std::vector<at::Tensor> forward(const call& c, const engine::routing& layer);

/// The sums of gates times slots of this worker's experts, back to where their rows are.
at::Tensor forward(const call& c, const engine::combining& layer);

}  // namespace tessera::nn

#ifndef TESSERA_COMPILED
#include <tessera/nn/layer/routing_impl.hpp>
#endif
