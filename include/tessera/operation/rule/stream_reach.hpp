#pragma once

#include <cstdint>

#include <tessera/topology/layout.hpp>

namespace tessera::engine {

/// Which rows of a stream somebody reads who has indices of the same extent: index i reads those of [i − before, i +
/// after]. All read all where nothing is said.
struct stream_reach {
  int dim = -1;  ///< of the first operand: the dimension whose indices read
  index_t before = 0;
  index_t after = 0;

  constexpr bool limited() const { return dim >= 0; }

  /// No index reads what comes behind it.
  static constexpr stream_reach up_to_itself(int dim) { return {dim, INT64_MAX, 0}; }
};

}  // namespace tessera::engine
