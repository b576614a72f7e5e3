#pragma once

#include <tessera/meta/kind.hpp>
#include <tessera/meta/verdict.hpp>

#include <cstddef>
#include <utility>

namespace tessera {

/// Several flows: what a module or a layer with several results gives. `return flows{y, z};`, `auto [values, indices] =
/// x | layer;`
template <class... F>
struct flows;
template <class First, class... Rest>
struct flows<First, Rest...> {
  using verdict = fits;
  First first;
  flows<Rest...> rest;

  constexpr flows(const First& f, const Rest&... others) : first(f), rest(others...) {}
};
template <>
struct flows<> {
  using verdict = fits;
};
template <class... F>
flows(F...) -> flows<F...>;
template <class... F>
inline constexpr kind engine::kind_of<flows<F...>> = kind::flows;

/// The I-th of several flows, as structured bindings take them.
template <std::size_t I, class First, class... Rest>
constexpr auto get(const flows<First, Rest...>& all) {
  if constexpr (I == 0) return all.first;
  else return get<I - 1>(all.rest);
}

}  // namespace tessera

template <class... F>
struct std::tuple_size<tessera::flows<F...>> : std::integral_constant<std::size_t, sizeof...(F)> {};
template <std::size_t I, class First, class... Rest>
struct std::tuple_element<I, tessera::flows<First, Rest...>> : std::tuple_element<I - 1, tessera::flows<Rest...>> {};
template <class First, class... Rest>
struct std::tuple_element<0, tessera::flows<First, Rest...>> {
  using type = First;
};
