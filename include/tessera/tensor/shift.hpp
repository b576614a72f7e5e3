#pragma once

#include <tessera/tensor/verbs.hpp>

namespace tessera {

namespace detail {

/// The deal of a ring after `steps`: along the axis, coordinate i holds what coordinate i + steps held.
inline layout turned(layout x, int axis, int steps, const std::string& where) {
  const axis_role& r = x.roles[axis];
  if (r.kind != role::cut || r.level != 0 || r.joined) throw error(refusal{code::shift_inside, axis}, where);
  dimension& d = x.dims[r.dimension];
  const int parts = x.parts(r.dimension);
  const int inner = parts / x.mesh.axes[axis].extent;
  d.turned = (((d.turned + steps * inner) % parts) + parts) % parts;
  return x;
}

/// Whether all parts of a dimension have one length.
constexpr bool even(const layout& x, int dim) {
  const parts p(x, dim);
  bool all = true;
  for (int k = 1; k < p.count(); ++k) all = all && size_of(p.held(k)) == size_of(p.held(0));
  return all;
}

}  // namespace detail

/// One or more steps of a ring along an axis: coordinate i gets what coordinate i + steps holds, the last ones what the first hold.
///
///  y is the Move to the turned deal, read under the old name: y[g] = x[(g + steps·length) mod n]
///
/// Its adjoint is the shift the other way. Parts must be equally long (else they cannot take each other's place): a tensor with
/// uneven parts is moved to `rotated<…>` instead, which keeps its name. Bytes: all that a worker holds, from one neighbour.
inline tensor<dyn> shift(const tensor<dyn>& x, const text& axis, int steps = 1, call_site at = call_site::here()) {
  const int a = x.layout().mesh.find(axis);
  if (a < 0) throw error(refusal{code::axis_not_in_mesh, 0, x.layout().mesh.axes.count}, x.team()->label());
  if (x.layout().mesh.axes[a].extent == 1) return x;
  const layout target = detail::turned(x.layout(), a, steps, x.team()->label());
  const int d = x.layout().roles[a].dimension;
  if (!detail::even(x.layout(), d)) throw error(refusal{code::uneven_shift, d, x.layout().parts(d)}, x.team()->label());
  return detail::tensor_of(x.team(), x.layout(), change_layout(x.team(), x.layout(), target, x.local(), at));
}

/// The same on a type: `shift<ring>(x)`, `shift<ring, -1>(x)`.
template <class Axis, int Steps = 1, class P, class S, class E>
tensor<P, S, E> shift(const tensor<P, S, E>& x, call_site at = call_site::here()) {
  return tensor<P, S, E>(shift(x.dynamic(), short_name_of<bare_axis<Axis>>(), Steps, at));
}

}  // namespace tessera
