#pragma once

#include <tessera/nn/bound_layer.hpp>
#include <tessera/nn/parameter.hpp>
#include <tessera/operation/functions/number.hpp>

#include <span>

namespace tessera::nn {

/// What a layer's forward is told: its operands and parameters on this worker, and how it is bound. A layer reads nothing else.
struct call {
  const bound_layer& layer;
  const std::vector<at::Tensor>& operands;  ///< this worker's boxes, as they come
  const std::vector<parameter>& parameters;
  bool training = true;
  functions::number number = {};  ///< that its function holds

  const at::Tensor& operand(std::size_t i = 0) const { return operands[i]; }
  /// An operand as the local operation takes it.
  at::Tensor used(std::size_t i = 0) const { return layer.ready(operands[i], i); }
  /// A parameter as the local operation takes it.
  at::Tensor weight(std::size_t i) const { return parameters[i].use(); }
};

}  // namespace tessera::nn
