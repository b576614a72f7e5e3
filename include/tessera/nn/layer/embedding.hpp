#pragma once

#include <tessera/nn/call/call.hpp>
#include <tessera/operation/layer/embedding.hpp>

namespace tessera::nn {

/// (raw → output) ∘ rows of the weight ∘ (indices → used). An index out of range is an error on every worker.
at::Tensor forward(const call& c, const engine::lookup& layer);

}  // namespace tessera::nn

#ifndef TESSERA_COMPILED
#include <tessera/nn/layer/embedding_impl.hpp>
#endif
