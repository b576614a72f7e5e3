#pragma once

#include <tessera/nn/call/bound_layer.hpp>
#include <tessera/operation/rule/local_boxes.hpp>
#include <tessera/operation/window/interpolation.hpp>

namespace tessera::nn {

/// The outputs of a box, interpolated from the inputs of another: `where` says which elements of the wholes they are.
///
/// Places and weights are LibTorch's for the whole tensors, in its own arithmetic: each output has its value there,
/// wherever boxes are cut. An input outside the box is replaced by the nearest inside. Along each dimension, from the
/// last to the third, rows are taken and added by weight; half types are added as float and rounded once.
at::Tensor interpolate(const at::Tensor& x, const engine::upsampling& layer, const local_boxes& where);

namespace engine {

/// Interpolation ∘ (blocks → what the outputs' parts need).
at::Tensor forward_upsampling(const bound_layer& b, const upsampling& layer, const at::Tensor& input);

}  // namespace engine

}  // namespace tessera::nn

#ifndef TESSERA_COMPILED
#include <tessera/nn/layer/interpolate_impl.hpp>
#endif
