#pragma once

/// A tensor library over a grid of workers: what a program names. Versions keep these names (docs/versions.md).
namespace tessera {

/// The parts of the library, floor by floor: documented and tested, for those who read or extend it. A version may
/// change it without a word.
namespace engine {}

/// Names that a header keeps to itself.
namespace detail {

using namespace engine;

}  // namespace detail

/// Functions of tensors as values: `functions::relu`.
namespace functions {

/// What these are made of.
namespace engine {

using namespace tessera::engine;

}  // namespace engine
}  // namespace functions

/// Layers, networks and what belongs to them.
namespace nn {

/// What these are made of. It stands beside its layers, so it names them and the engine of all floors by themselves.
namespace engine {

using namespace tessera::engine;

}  // namespace engine
}  // namespace nn
}  // namespace tessera
