#pragma once

#include <tessera/meta/integer.hpp>

namespace tessera::engine {

/// The activations alive at once while one node of a network computes, in bytes.
struct node_memory {
  index_t forward = 0;  ///< in training
  index_t backward = 0;
};

}  // namespace tessera::engine
