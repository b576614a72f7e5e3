#pragma once

#include <tessera/nn/call/call.hpp>
#include <tessera/operation/layer/projection.hpp>

namespace tessera::nn {

namespace engine {

/// y[e, …, o] = Σ x[e, …, i] w[e, i, o] + b[e, 0, o].
at::Tensor linear_of_each(const at::Tensor& x, const at::Tensor& weight, const std::optional<at::Tensor>& bias);

}  // namespace engine

/// (x · w + b) ∘ (x → used) for each part; half types are added in float and rounded once.
std::vector<at::Tensor> forward(const call& c, const engine::projection& layer);

}  // namespace tessera::nn

#ifndef TESSERA_COMPILED
#include <tessera/nn/layer/projection_impl.hpp>
#endif
