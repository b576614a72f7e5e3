#pragma once
// How tensors lie on the stages of a pipeline, which are the coordinates of a mesh's last axis.

#include "tests/support/tensors.hpp"

namespace tessera::testing {

inline std::string_view last_axis(const mesh_value& m) {
  const text& name = m.axes[m.axes.count - 1].name;
  return {name.data, static_cast<std::size_t>(name.size)};
}

/// On a stage, whose workers share rows; or where the coordinate is below 0 on all.
inline layout on_stage(const mesh_value& m, const std::vector<index_t>& extents, int coordinate) {
  layout x;
  x.mesh = m;
  x.placements.resize(m.axes.count);
  for (index_t n : extents) x.dims.push({}), x.dims[x.dims.count - 1].extent = n;
  const int s = m.axes.count - 1;
  if (coordinate >= 0 && m.axes[s].extent > 1) x.set_placement(s, tessera::engine::held_on(coordinate));
  for (int a = 0; a < s; ++a) x.cut_by(0, a, false);
  return x;
}

inline int last_stage(const mesh_value& m) { return static_cast<int>(m.axes[m.axes.count - 1].extent) - 1; }

}  // namespace tessera::testing
