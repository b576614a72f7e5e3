#pragma once

#include <tessera/nn/call/bound_layer.hpp>
#include <tessera/nn/parameter/buffer.hpp>
#include <tessera/nn/parameter/parameter.hpp>
#include <tessera/operation/plan/number.hpp>
#include <tessera/tensor/random.hpp>

#include <span>

namespace tessera::nn {

namespace engine {

/// The parameters and buffers of a layer on this worker.
struct layer_state {
  std::vector<parameter> parameters;
  std::vector<buffer> buffers;
};

}  // namespace engine

/// The argument of a layer's forward: its operands and state on this worker, and its binding. A layer reads nothing
/// else.
struct call {
  const engine::bound_layer& bound;
  const std::vector<at::Tensor>& operands;  ///< this worker's boxes, as they come
  const engine::layer_state& state;
  bool training = true;
  functions::engine::number number = {};  ///< that its function holds
  bool compares_indices = true;           ///< workers tell each other of an index of no row before it is looked up

  const at::Tensor& operand(std::size_t i = 0) const { return operands[i]; }
  /// An operand as the local operation takes it.
  at::Tensor used(std::size_t i = 0) const { return bound.ready(operands[i], i); }
  /// A parameter as the local operation takes it, converted to elements one after the other.
  at::Tensor weight(std::size_t i, std::initializer_list<at::ScalarType> to = {}) const {
    return state.parameters[i].use(to);
  }
  /// A buffer of the layer, which keeps its value from call to call.
  const nn::buffer& buffer(std::size_t i) const { return state.buffers[i]; }
  /// The numbers that a layer draws now: its buffers are how often it did and its key.
  tessera::detail::drawn_numbers drawn() const {
    const nn::buffer& draws = buffer(0);
    tessera::detail::drawn_numbers now(buffer(1).value(), draws.value());
    draws.set(draws.value() + 1);
    return now;
  }
  /// Takes a value between local operations from one layout to the next.
  at::Tensor exchanged(const at::Tensor& x, std::size_t i = 0) const { return bound.exchanged(x, i); }
};

}  // namespace tessera::nn
