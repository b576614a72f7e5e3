#pragma once

#include <tessera/operation/refusals.hpp>
#include <tessera/topology/mesh_value.hpp>

namespace tessera::detail {

// The places of named axes in the mesh; `used` has a bit for each that was named already.
constexpr static_vector<int, max_axes> found(const mesh_value& mesh, const static_vector<text, max_axes>& names,
                                             unsigned& used, refusal& why) {
  static_vector<int, max_axes> axes;
  for (int i = 0; i < names.count; ++i) {
    const int a = mesh.find(names[i]);
    if (a < 0) {
      why = first_of(why, refusal{code::axis_not_in_mesh, names[i], mesh.axes.count});
    } else if ((used >> a & 1u) != 0) {
      why = first_of(why, refusal{code::axis_used_twice, names[i]});
    } else {
      used |= 1u << a;
      axes.push(a);
    }
  }
  return axes;
}

}  // namespace tessera::detail
