#pragma once

#include <tessera/meta/kind.hpp>
#include <tessera/meta/text.hpp>

namespace tessera {

namespace detail {

/// The largest mesh, so that a worker's rank is an int.
inline constexpr index_t most_workers = INT32_MAX;

}  // namespace detail

/// A named direction of the worker grid: users derive a type of their own, so that every message can name it.
///
/// `struct model : axis<4> {};`
template <index_t Extent>
struct axis : detail::is_a<kind::axis> {
  static constexpr index_t axis_extent = Extent;
};

/// An axis whose extent a mesh overrides: `mesh<data, extent<model, 8>>`.
template <class Axis, index_t Extent>
struct extent : axis<Extent> {
  using axis_type = Axis;
};

/// Axes that act as one, the last one fastest: `struct data : product<edp, ep> {};`
///
/// Its coordinate is the row-major number over its factors; a dimension that it cuts is cut once, into as many parts.
template <class... Factors>
struct product;

namespace detail {

template <class... Axes>
struct axes_are {};

template <class... Factors>
axes_are<Factors...> factors_of(const product<Factors...>*);

template <class A, class B>
struct join_axes;
template <class... A, class... B>
struct join_axes<axes_are<A...>, axes_are<B...>> {
  using type = axes_are<A..., B...>;
};

template <class A>
struct factors;

// Axes in order, products replaced by their factors.
template <class Done, class... Axes>
struct all_factors {
  using type = Done;
};
template <class Done, class First, class... Rest>
struct all_factors<Done, First, Rest...>
    : all_factors<typename join_axes<Done, typename factors<First>::type>::type, Rest...> {};

template <class... Axes>
typename all_factors<axes_are<>, Axes...>::type flat(axes_are<Axes...>);

/// The axes that a type names: itself, or the factors of a product.
template <class A>
struct factors {
  using type = axes_are<A>;
  static constexpr bool is_product = false;
};
template <class A>
  requires requires { factors_of(static_cast<const A*>(nullptr)); }
struct factors<A> {
  using made_of = decltype(factors_of(static_cast<const A*>(nullptr)));
  using type = decltype(flat(made_of{}));
  static constexpr bool is_product = true;
};

template <class A>
struct bare {
  using type = A;
};
template <class A, index_t N>
struct bare<extent<A, N>> {
  using type = A;
};

}  // namespace detail

namespace engine {

/// The user's own type behind an axis, without an extent that a mesh gave it.
template <class A>
using bare_axis = typename detail::bare<A>::type;

}  // namespace engine

/// Anything that names a direction and says how far it goes.
template <class A>
concept Axis = engine::kind_of<A> == kind::axis;

namespace detail {

template <kind Of, class... Axes>
constexpr refusal check_axes(int argument = 0);

// What an axis is made of: the factors of a product, and what a mesh gives another extent.
template <class A>
constexpr refusal check_axis() {
  if constexpr (factors<A>::is_product)
    return []<class... Factors>(axes_are<Factors...>) {
      return check_axes<kind::axis, Factors...>();
    }(typename factors<A>::made_of{});
  else if constexpr (!std::is_same_v<bare_axis<A>, A>) return check_axes<kind::axis, bare_axis<A>>();
  else return {};
}

/// Refuses what is no axis among these arguments of an `Of`, products and extents that are made of something else
/// included.
template <kind Of, class... Axes>
constexpr refusal check_axes(int argument) {
  refusal why = check_kinds<Of, kind::axis, Axes...>(argument);
  if (why.ok()) static_cast<void>(((why = check_axis<Axes>()).ok() && ...));
  return why;
}

// The same as a verdict's source.
template <kind Of, class... Axes>
struct axes_check {
  static constexpr refusal value = check_axes<Of, Axes...>();
};

// The extent of an axis; of what is none 1, and no more than a mesh can have.
template <class A>
constexpr index_t extent_along() {
  if constexpr (kind_of<A> == kind::axis) return clamped(A::axis_extent, INT32_MIN, most_workers + 1);
  else return 1;
}

}  // namespace detail

template <class... Factors>
struct product : detail::is_a<kind::axis> {
  static constexpr index_t axis_extent = [] {
    index_t n = 1;
    ((n = detail::clamped(n * detail::extent_along<Factors>(), INT32_MIN, detail::most_workers + 1)), ...);
    return n;
  }();
};

}  // namespace tessera
