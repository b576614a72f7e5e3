#pragma once

namespace tessera {

/// The placement of a mesh axis, as DTensor's of a mesh dimension.
///
///  replicate  equal copies that each worker may use differently; the gradient is partial
///  partial    terms of a pending combine; the gradient is replicate
///  invariant  equal copies that all use alike; the gradient is invariant
///  on         only one coordinate holds it
///  cut        each coordinate holds its part of a dimension
enum class placement : signed char { replicate, partial, invariant, on, cut };

/// How terms combine; every one but `sum` is for values only and has no gradient. `any` and `all` are logical or and
/// and: they give 1 or 0.
enum class combine : signed char { sum, max, min, prod, any, all };

namespace engine {

/// The placement of one axis, with what belongs to it.
struct axis_placement {
  placement kind = placement::replicate;
  signed char dimension = 0;    ///< cut: which dimension
  signed char level = 0;        ///< cut: its place among the axes that cut this dimension, outermost 0
  bool joined = false;          ///< cut: it cuts together with the axis one level further out, as one axis (a product)
  combine with = combine::sum;  ///< partial: how the terms combine
  int coordinate = 0;           ///< on: which coordinate

  friend constexpr bool operator==(const axis_placement&, const axis_placement&) = default;
};

/// The placement of an axis that holds a tensor on one coordinate alone.
constexpr axis_placement held_on(int coordinate) {
  axis_placement r{placement::on};
  r.coordinate = coordinate;
  return r;
}

/// The placement of an axis along which terms are pending.
constexpr axis_placement partial_by(combine with) {
  axis_placement r{placement::partial};
  r.with = with;
  return r;
}

}  // namespace engine

}  // namespace tessera
