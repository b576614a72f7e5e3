#pragma once

#include <tessera/nn/layer/fft.hpp>
#include <tessera/operation/fourier/spectral_conv.hpp>

namespace tessera::nn {

/// LibTorch's transforms there, a product of the wave numbers that are kept, and LibTorch's transforms back.
at::Tensor forward(const call& c, const engine::spectral& layer);

}  // namespace tessera::nn

#ifndef TESSERA_COMPILED
#include <tessera/nn/layer/spectral_conv_impl.hpp>
#endif
