#pragma once

#include <tessera/topology/layout.hpp>

namespace tessera::engine {

/// The dimensions whose extents a type leaves open, a bit each.
constexpr unsigned open_dimensions(const layout& of_type) {
  unsigned open = 0;
  for (int d = 0; d < of_type.dims.count; ++d)
    if (!of_type.dims[d].has_static_extent()) open |= 1u << d;
  return open;
}

/// An operand with extents that its type may not know. Those have a name, so that plans choose as they did for the
/// type.
constexpr layout with_open(layout x, unsigned open) {
  for (int d = 0; d < x.dims.count; ++d) {
    dimension& dim = x.dims[d];
    if ((open >> d & 1u) == 0) dim.tag = {};
    else if (dim.tag.size == 0) dim.tag = unnamed;
  }
  return x;
}

}  // namespace tessera::engine
