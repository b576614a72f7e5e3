#pragma once

#include <tessera/nn/call.hpp>
#include <tessera/operation/projection.hpp>

namespace tessera::nn {

/// (x · w + b) ∘ (x → used) for each part; half types are added in float and rounded once.
std::vector<at::Tensor> forward(const call& c, const projection& what);

}  // namespace tessera::nn

#ifndef TESSERA_COMPILED
#include <tessera/nn/projection.ipp>
#endif
