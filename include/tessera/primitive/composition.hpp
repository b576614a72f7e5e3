#pragma once

#include <tessera/primitive/primitive.hpp>

namespace tessera {

template <class... Fs>
struct composition;
template <class F, class... Fs>
inline constexpr kind engine::kind_of<composition<F, Fs...>> = kind::primitive;

namespace detail {

template <class F>
inline constexpr kind kind_of_map = Primitive<F>                    ? kind::primitive
                                    : kind_of<F> == kind::primitive ? kind::something_else
                                                                    : kind_of<F>;

// Whether a map is not refused, as far as it says.
template <class F>
inline constexpr bool accepted = [] {
  if constexpr (requires { F::verdict::ok; }) return F::verdict::ok;
  else return true;
}();

// What maps one after the other are, if each begins where the one before it ends.
template <class... Fs>
struct chained;
template <class F>
struct chained<F> {
  using domain = typename F::domain;
  using codomain = typename F::codomain;
  static constexpr int gap = -1;
};
template <class F, class G, class... Rest>
struct chained<F, G, Rest...> {
  using domain = typename F::domain;
  using codomain = typename chained<G, Rest...>::codomain;
  static constexpr int behind = chained<G, Rest...>::gap;
  static constexpr int gap =
      !same(described<typename F::codomain>::value.layout, described<typename G::domain>::value.layout) ? 0
      : behind < 0                                                                                      ? -1
                                                                                                        : behind + 1;
};

// Why a map has no adjoint, which a composition would be made of.
template <class F>
constexpr refusal adjoint_refusal() {
  if constexpr (requires {
                  F::has_adjoint;
                  F::verdict::ok;
                })
    return F::verdict::ok ? adjoint_check<typename F::domain, typename F::codomain>::value : refusal{};
  else return {};
}

template <class... Fs>
struct composition_check {
  static constexpr refusal value = [] {
    if constexpr (!(adjoint_refusal<Fs>().ok() && ...)) {
      return first_of(adjoint_refusal<Fs>()...);
    } else {
      constexpr kind given[]{kind_of_map<Fs>...};
      for (int i = 0; i < static_cast<int>(sizeof...(Fs)); ++i)
        if (given[i] != kind::primitive) return refused_kind<kind::primitive, kind::primitive>(i, given[i]);
      if constexpr ((Primitive<Fs> && ...)) {
        if (!(accepted<Fs> && ...)) return refusal{code::refused_before};
        if (chained<Fs...>::gap >= 0) return refusal{code::partitions_do_not_meet, chained<Fs...>::gap + 1};
      }
      return refusal{};
    }
  }();
};

template <class Reversed, class... Fs>
struct reversed_adjoints;

// The ends of a composition and its adjoint; of one that is refused, those of nothing.
template <bool Accepted, class... Fs>
struct ends_of {
  using domain = tensor<refused_partition, shape<>>;
  using codomain = domain;
  using adjoint = refused_primitive<domain, domain>;
};
template <class... Fs>
struct ends_of<true, Fs...> {
  using domain = typename chained<Fs...>::domain;
  using codomain = typename chained<Fs...>::codomain;
  using adjoint = typename reversed_adjoints<composition<>, Fs...>::type;
};

}  // namespace detail

/// Primitives one after the other, first to last: its adjoint is the adjoints, last to first.
template <class... Fs>
struct composition {
  // what a map refuses, it refuses here
  static_assert(((sizeof(std::conditional_t<engine::kind_of<Fs> == kind::primitive, Fs, char>) > 0) && ...));
  using verdict = engine::verdict_of<detail::composition_check<Fs...>>;
  using domain = typename detail::ends_of<verdict::ok, Fs...>::domain;
  using codomain = typename detail::ends_of<verdict::ok, Fs...>::codomain;
  using adjoint = typename detail::ends_of<verdict::ok, Fs...>::adjoint;

  /// The cost of its maps one after the other: elements, and the bytes that all workers receive.
  template <class... Bindings>
  static constexpr tessera::cost cost(const Bindings&... bindings) {
    tessera::cost sum;
    if constexpr (verdict::ok) ((sum += Fs::cost(bindings...)), ...);
    return detail::within_count(sum);
  }
  template <class... Bindings>
  static constexpr index_t bytes(const Bindings&... bindings) {
    return detail::bytes_moved(cost(bindings...), detail::described<domain>::value.element);
  }

  static_assert(
      detail::leads_back_if<verdict::ok, composition, domain, codomain, adjoint>::value,
      "[tessera.primitive.law] the adjoint does not lead back between the cotangents; this is a fault of the library");
  static_assert((verdict::template refuse<verdict>(), true));
};
template <>
struct composition<> {};

namespace detail {

template <class... Done>
struct reversed_adjoints<composition<Done...>> {
  using type = composition<Done...>;
};
template <class... Done, class F, class... Rest>
struct reversed_adjoints<composition<Done...>, F, Rest...>
    : reversed_adjoints<composition<typename F::adjoint, Done...>, Rest...> {};

}  // namespace detail
}  // namespace tessera
