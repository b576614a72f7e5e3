#pragma once

#include <tessera/meta/text.hpp>

#include <concepts>

namespace tessera {

/// A named direction of the worker grid: users derive a type of their own, so that every message can name it.
///
/// `struct model : axis<4> {};`
template <int Extent>
struct axis {
  static constexpr int axis_extent = Extent;
};

/// An axis whose extent a mesh overrides: `mesh<data, extent<model, 8>>`.
template <class Axis, int Extent>
struct extent : axis<Extent> {
  using axis_type = Axis;
};

namespace detail {

template <class A>
struct bare {
  using type = A;
};
template <class A, int N>
struct bare<extent<A, N>> {
  using type = A;
};

}  // namespace detail

/// The user's own type behind an axis, without an extent that a mesh gave it.
template <class A>
using bare_axis = typename detail::bare<A>::type;

/// Anything that names a direction and says how far it goes.
template <class A>
concept Axis = requires {
  { A::axis_extent } -> std::convertible_to<int>;
};

}  // namespace tessera
