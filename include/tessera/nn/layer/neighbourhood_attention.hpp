#pragma once

#include <tessera/nn/call/call.hpp>
#include <tessera/operation/attention/neighbourhood_attention.hpp>

namespace tessera::nn {

/// Attention of this worker's queries to their windows of the keys that came, tap by tap. No other scores are made, and
/// no key is copied out for a query.
at::Tensor forward(const call& c, const engine::neighbourhood_description& layer);

}  // namespace tessera::nn

#ifndef TESSERA_COMPILED
#include <tessera/nn/layer/neighbourhood_attention_impl.hpp>
#endif
