#pragma once

#include <tessera/nn/call/call.hpp>
#include <tessera/operation/fourier/transform.hpp>

namespace tessera::nn {

/// LibTorch's transforms of whole dimensions, between which the tensor moves.
at::Tensor forward(const call& c, const engine::fourier& layer);

}  // namespace tessera::nn

#ifndef TESSERA_COMPILED
#include <tessera/nn/layer/fft_impl.hpp>
#endif
