#pragma once

#include <tessera/tensor/verbs.hpp>

namespace tessera {

namespace detail {

/// The deal of a ring after `steps`: along the axis, coordinate i holds what coordinate i + steps held.
inline layout turned(layout x, int axis, int steps) {
  const int dim = x.placements[axis].dimension;
  const index_t inner = x.part_count(dim) / x.mesh.axes[axis].extent;
  int& turned = x.dims[dim].turned;
  turned = static_cast<int>(modulo(turned + steps * inner, x.part_count(dim)));
  return x;
}

/// Whether all parts of a dimension have one length.
constexpr bool even(const layout& x, int dim) {
  const parts p(x, dim);
  if (p.of.kind == cover::tiled && p.of.bounds == nullptr)
    return p.of.extent % capped_product(p.of.grain(), p.count()) == 0;
  bool all = true;
  for (int k = 1; k < p.count(); ++k) all = all && size_of(p.held(k)) == size_of(p.held(0));
  return all;
}

/// Refuses a ring along anything but an outermost cut into parts of equal length, each one interval. Lengths that the
/// type does not know are read from the value.
constexpr refusal check_shift(const layout& x, const text& name) {
  const int axis = x.mesh.find(name);
  if (axis < 0) return refusal{code::axis_not_in_mesh, name, x.mesh.axes.count};
  if (x.mesh.axes[axis].extent == 1) return {};
  const axis_placement& r = x.placements[axis];
  if (r.kind != placement::cut || r.level != 0 || r.joined) return refusal{code::shift_inside, name};
  const dimension& d = x.dims[r.dimension];
  if (d.zigzag) return refusal{code::interval_wanted, r.dimension};
  const bool known = d.extent != dynamic && d.bounds != learned;
  return known && !even(x, r.dimension) ? refusal{code::uneven_shift, r.dimension, x.part_count(r.dimension)}
                                        : refusal{};
}

template <class T, class Axis>
struct shifts {
  static constexpr refusal value = [] {
    const layout& x = described<T>::value.layout;
    return first_of(described<T>::verdict_source::value, check_axes<kind::call, Axis>(),
                    check_shift(x, short_name_of<bare_axis<Axis>>()));
  }();
};

}  // namespace detail

/// One or more steps of a ring along an axis: coordinate i gets what coordinate i + steps holds, the last ones what the
/// first hold.
///
///  y is the Move to the turned deal, read under the old name: y[g] = x[(g + steps·length) mod n]
///
/// Its adjoint is the shift the other way. Parts must be equally long (else they cannot take each other's place): a
/// tensor with uneven parts is moved to `rotated<…>` instead, which keeps its name. Bytes: all that a worker holds,
/// from one neighbour.
inline tensor<dyn> shift(const tensor<dyn>& x, const text& axis, int steps = 1, call_site at = call_site::here()) {
  engine::check(detail::check_shift(x.layout(), axis), *x.team());
  const int a = x.layout().mesh.find(axis);
  if (x.layout().mesh.axes[a].extent == 1) return x;
  const layout target = detail::turned(x.layout(), a, steps);
  const tensor<dyn> y = to(target, x, at);
  return detail::tensor_of(x.team(), x.where(), y.local(), y.lineage());
}

/// The same on a type: `shift<ring>(x)`, `shift<ring, -1>(x)`.
template <class Axis, int Steps = 1, engine::Distributes P, class S, class E>
tensor<P, S, E> shift(const tensor<P, S, E>& x, call_site at = call_site::here()) {
  using verdict = engine::verdict_of<detail::shifts<tensor<P, S, E>, Axis>>;
  verdict::template refuse<verdict>();
  if constexpr (verdict::ok)
    return tensor<P, S, E>(shift(x.dynamic(), engine::short_name_of<engine::bare_axis<Axis>>(), Steps, at));
  else return {};
}
template <class Axis, int Steps = 1, engine::UntypedTensor X>
auto shift(const X&) {
  using verdict = detail::untyped<X, Axis>;
  verdict::template refuse<verdict>();
  return detail::refused_tensor<>();
}

}  // namespace tessera
