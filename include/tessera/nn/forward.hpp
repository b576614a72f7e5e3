#pragma once

#include <tessera/nn/parameter.hpp>
#include <tessera/nn/pooling.hpp>

namespace tessera::nn {

/// (raw → output) ∘ (x · w) ∘ (input → used), plus the bias: every linear layer and convolution. Products and bias of half types are
/// added in a wider type and rounded once; terms that other workers add are rounded before they go.
at::Tensor forward_contraction(const bound_layer& b, const contraction& what, const at::Tensor& input, const std::vector<parameter>& parameters);

/// Padding and slices ∘ (blocks → what is kept).
at::Tensor forward_widened(const bound_layer& b, const static_vector<sliding, 8>& widths, const at::Tensor& input);

/// The layers as functions of their plan: a layer of one's own has its `forward`, the others are found by what their type has.
template <class L>
at::Tensor forward(const bound_layer& b, const at::Tensor& x, const std::vector<parameter>& parameters) {
  if constexpr (requires { L::forward(b.team, b.plan, x, parameters); }) return L::forward(b.team, b.plan, x, parameters);
  else if constexpr (requires { L::weights(); }) return forward_contraction(b, L::weights(), x, parameters);
  else if constexpr (requires { L::pool(); }) return forward_pooling(b, L::pool(), x).values;
  else if constexpr (requires { L::widths(b.plan.input); }) return forward_widened(b, L::widths(b.plan.input), x);
  else if constexpr (std::is_same_v<L, relu>) return at::relu(x);
  else if constexpr (std::is_same_v<L, flatten>) return x.reshape(b.sizes);
  else return change_layout(b.team, b.input, b.output, x);
}

}  // namespace tessera::nn

#ifndef TESSERA_COMPILED
#include <tessera/nn/forward.ipp>
#endif
