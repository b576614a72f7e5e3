#pragma once

#include <tessera/nn/call/call.hpp>
#include <tessera/operation/layer/normalisation.hpp>

namespace tessera::nn {

/// (x − mean) / √(variance + eps) · weight + bias: by LibTorch's own kernel where no group is cut, else with moments in
/// double.
at::Tensor forward(const call& c, const engine::normalisation& layer);

}  // namespace tessera::nn

#ifndef TESSERA_COMPILED
#include <tessera/nn/layer/normalisation_impl.hpp>
#endif
