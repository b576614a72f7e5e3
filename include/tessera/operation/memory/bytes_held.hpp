#pragma once

#include <tessera/meta/integer.hpp>
#include <tessera/plan/parts.hpp>
#include <tessera/topology/element.hpp>

namespace tessera::detail {

/// The bytes of a tensor on the worker that has most of it.
constexpr index_t bytes_held(const layout& x, element e) {
  index_t n = bytes_of(e);
  for (int d = 0; d < x.dims.count; ++d) n = capped_product(n, parts(x, d).largest());
  return n;
}

}  // namespace tessera::detail
