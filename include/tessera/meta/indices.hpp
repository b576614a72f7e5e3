#pragma once

#include <tessera/meta/namespaces.hpp>

namespace tessera::detail {

/// The numbers 0, 1, …, N − 1 as a type: what <utility> has, without all else that it has.
template <int... I>
struct indices {};

template <int... I, int... J>
indices<I..., (static_cast<int>(sizeof...(I)) + J)...> joined(indices<I...>, indices<J...>);

template <int N>
struct indices_named {
  using type = decltype(joined(typename indices_named<N / 2>::type{}, typename indices_named<N - N / 2>::type{}));
};
template <>
struct indices_named<1> {
  using type = indices<0>;
};
template <>
struct indices_named<0> {
  using type = indices<>;
};

template <int N>
using indices_below = typename indices_named<N>::type;

}  // namespace tessera::detail
