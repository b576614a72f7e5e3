#pragma once
// One dimension of 12 elements over one axis of four workers, in each placement.

#include <tessera/core.hpp>

namespace tessera::testing {

using namespace engine;

struct a : axis<4> {};

constexpr layout one_axis(placement kind) {
  layout x;
  x.mesh = mesh<a>::value;
  x.placements.resize(1);
  dimension d;
  d.extent = 12;
  x.dims.push(d);
  if (kind == placement::cut) x.cut_by(0, 0);
  else x.placements[0] = {kind};
  return x;
}

}  // namespace tessera::testing
