#pragma once

#include <tessera/topology/axis.hpp>

namespace tessera::detail {

// The types that a type is made of.
template <class T>
struct parts_of_type {
  using type = axes_are<>;
};
template <template <class...> class Made, class... Of>
struct parts_of_type<Made<Of...>> {
  using type = axes_are<Of...>;
};
template <template <class, auto...> class Made, class Of, auto... Numbers>
  requires(sizeof...(Numbers) > 0)
struct parts_of_type<Made<Of, Numbers...>> {
  using type = axes_are<Of>;
};
template <template <class, class, auto...> class Made, class One, class Two, auto... Numbers>
  requires(sizeof...(Numbers) > 0)
struct parts_of_type<Made<One, Two, Numbers...>> {
  using type = axes_are<One, Two>;
};
template <template <auto, class...> class Made, auto Number, class... Of>
struct parts_of_type<Made<Number, Of...>> {
  using type = axes_are<Of...>;
};
template <template <auto, auto, class...> class Made, auto One, auto Two, class... Of>
struct parts_of_type<Made<One, Two, Of...>> {
  using type = axes_are<Of...>;
};
template <class T>
  requires(kind_of<T> == kind::axis && factors<T>::is_product)
struct parts_of_type<T> {
  using type = typename factors<T>::type;
};

template <class A, std::uint64_t Name>
constexpr bool is_called() {
  if constexpr (kind_of<A> == kind::axis) return short_name_of<bare_axis<A>>().hash == Name;
  else return false;
}

// The first axis of a name among types and what they are made of.
template <std::uint64_t Name>
std::type_identity<with::none> axis_called(axes_are<>);
template <std::uint64_t Name, class First, class... Rest>
constexpr auto axis_called(axes_are<First, Rest...>) {
  using within = typename parts_of_type<First>::type;
  if constexpr (is_called<First, Name>()) return std::type_identity<bare_axis<First>>{};
  else return decltype(axis_called<Name>(typename join_axes<within, axes_are<Rest...>>::type{})){};
}

template <class Source, class... Named>
struct axis_of_refusal<constant_refusal<Source, Named...>> {
  using type = typename decltype(axis_called<Source::value.axis.hash>(axes_are<Source, Named...>{}))::type;
};

}  // namespace tessera::detail
