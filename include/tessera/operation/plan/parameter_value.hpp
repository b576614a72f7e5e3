#pragma once

#include <tessera/operation/plan/initial_value.hpp>
#include <tessera/topology/tensor_type.hpp>

namespace tessera {

namespace engine {

/// How a parameter stands in the state dict of the serial model: neighbouring dimensions as one, and of that a range.
struct serial_view {
  const char* name = nullptr;  ///< the serial tensor's, where it is not the parameter's own
  int dimension = 0;           ///< of the serial tensor, which has all others as the parameter
  /// as many of the parameter's dimensions as it is the product of, outermost first; 0: one
  int factors = 0;
  index_t begin = 0;  ///< where the parameter begins in it
  index_t whole = 0;  ///< its extent; 0: the parameter's

  friend constexpr bool operator==(const serial_view&, const serial_view&) = default;
};

}  // namespace engine

/// How often what a layer takes of a parameter that is stored as tiles is gathered.
enum class gathering : unsigned char {
  twice,    ///< for forward and again for backward
  once,     ///< for both
  held,     ///< for all forwards and backwards until its gradient is reduced, which is asked for
  bundled,  ///< the same, but each backward reduces what waits unless an accumulation leaves it
};

namespace engine {

/// Whether what is gathered stays until the gradient is reduced.
constexpr bool holds(gathering times) { return times >= gathering::held; }

}  // namespace engine

/// Where one parameter of a layer lives and how the layer sees it.
struct parameter_value {
  const char* name = nullptr;
  layout stored;             ///< what the optimizer steps and the state dict saves
  layout used;               ///< what the layer's local operation takes
  initial_value initial;     ///< with the fans of the serial layer: initial values do not depend on the partition
  bool has_element = false;  ///< one of its own, not that of the layer's first operand
  tessera::element element{};
  engine::serial_view serial = {};
  bool frozen = false;      ///< it has no gradient
  bool as_operand = false;  ///< the local operation takes it rounded to the element of the layer's first operand
  bool rewritten = false;   ///< a forward may change it in place
};

/// Where one buffer of a layer lives: a tensor that forward assigns and that has no cotangent, as running statistics.
struct buffer_value {
  const char* name = nullptr;
  layout stored;
  initial_value initial;
  tessera::element element = tessera::element::float32;
  bool only_here = false;  ///< the serial model has none, so a state dict may lack it
};

}  // namespace tessera
