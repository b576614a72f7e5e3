#pragma once

#include <tessera/nn/call.hpp>
#include <tessera/nn/pooling.hpp>

namespace tessera::nn {

/// (raw → output) ∘ (x · w) ∘ (input → used), plus the bias: every linear layer and convolution. Products and bias of half types are
/// added in a wider type and rounded once; terms that other workers add are rounded before they go.
at::Tensor forward_contraction(const bound_layer& b, const contraction& what, const at::Tensor& input, const std::vector<parameter>& parameters);

/// Padding and slices ∘ (blocks → what is kept).
at::Tensor forward_widened(const bound_layer& b, const static_vector<sliding, 8>& widths, const at::Tensor& input);

// The families of layers, by what their types say that they are.
inline at::Tensor forward(const call& c, const contraction& what) { return forward_contraction(c.layer, what, c.operand(), c.parameters); }
inline at::Tensor forward(const call& c, const pooling& what) { return forward_pooling(c.layer, what, c.operand()).values; }
inline at::Tensor forward(const call& c, const widening& what) { return forward_widened(c.layer, what.widths, c.operand()); }
inline at::Tensor forward(const call& c, const slicing& what) {
  return forward_widened(c.layer, what.of(c.layer.inputs[0].from->layout()).widths, c.operand());
}
inline at::Tensor forward(const call& c, const flattening&) { return c.operand().reshape(c.layer.sizes); }
inline at::Tensor forward(const call& c, const moving&) { return c.layer.leaving(c.used()); }
inline at::Tensor forward(const call& c, const rectifying&) { return at::relu(c.operand()); }

}  // namespace tessera::nn

#ifndef TESSERA_COMPILED
#include <tessera/nn/forward.ipp>
#endif
