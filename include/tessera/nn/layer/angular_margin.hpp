#pragma once

#include <tessera/nn/layer/losses.hpp>
#include <tessera/operation/function/angular_margin.hpp>

namespace tessera::functions {

/// The margin of what a worker holds, after all have told of labels that name no class.
at::Tensor compute(const angular_margin& f, const engine::bound_exchanges& by, const at::Tensor& cosines,
                   const at::Tensor& labels);

}  // namespace tessera::functions

#ifndef TESSERA_COMPILED
#include <tessera/nn/layer/angular_margin_impl.hpp>
#endif
