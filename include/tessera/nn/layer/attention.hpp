#pragma once

#include <tessera/nn/call/call.hpp>
#include <tessera/operation/attention/attention.hpp>

namespace tessera::nn {

/// LibTorch's kernel on the heads that this worker has.
at::Tensor forward(const call& c, const engine::attention_description& layer);

}  // namespace tessera::nn

#ifndef TESSERA_COMPILED
#include <tessera/nn/layer/attention_impl.hpp>
#endif
