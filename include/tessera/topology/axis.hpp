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

/// Axes that act as one, the last one fastest: `struct data : product<edp, ep> {};`
///
/// Its coordinate is the row-major number over its factors; a dimension that it cuts is cut once, into as many parts.
template <class... Factors>
struct product {
  static constexpr int axis_extent = (1 * ... * Factors::axis_extent);
};

namespace detail {

template <class... Axes>
struct axes_are {};

template <class... Factors>
axes_are<Factors...> factors_of(const product<Factors...>*);

/// The axes that a type names: itself, or the factors of a product.
template <class A>
struct factors {
  using type = axes_are<A>;
};
template <class A>
  requires requires { factors_of(static_cast<const A*>(nullptr)); }
struct factors<A> {
  using type = decltype(factors_of(static_cast<const A*>(nullptr)));
};

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
