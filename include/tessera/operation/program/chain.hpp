#pragma once

#include <tessera/operation/program/flow.hpp>

namespace tessera {

/// The place of a verdict in a chain: layer `Index`, counted from 0, which is an `L`.
template <int Index, class L, class Verdict>
struct at_layer : Verdict {
  static constexpr bool ok = Verdict::ok;
};

/// The place of a verdict that has one in a chain within part `Index` of this one.
template <int Index, class Verdict>
struct within : Verdict {
  static constexpr bool ok = Verdict::ok;
};

namespace detail {

template <int Index, class Part, class Verdict>
struct located_verdict {
  using type = at_layer<Index, Part, Verdict>;
};
template <int Index, class Part, int Inner, class L, class Verdict>
struct located_verdict<Index, Part, at_layer<Inner, L, Verdict>> {
  using type = within<Index, at_layer<Inner, L, Verdict>>;
};
template <int Index, class Part, int Inner, class Verdict>
struct located_verdict<Index, Part, within<Inner, Verdict>> {
  using type = within<Index, within<Inner, Verdict>>;
};

// A refused flow that says where in a chain.
template <int Index, class Part, class Y>
constexpr auto located(const Y& y) {
  using verdict = typename Y::verdict;
  if constexpr (verdict::ok || std::is_same_v<verdict, refused_before>) return y;
  else return flow<typename Y::type, typename Y::trace_mode, typename located_verdict<Index, Part, verdict>::type>{};
}

template <int Index, class Part, class X>
constexpr auto one_more(const X& x) {
  if constexpr (X::verdict::ok) return located<Index, Part>(passed_on<Part>(x));
  else return x;
}

// Eight parts a level, as calls and instantiations are nested no deeper than compilers allow; a refused flow passes the
// rest by.
template <int Index, class... Parts>
struct parts_from {
  template <class X>
  static constexpr auto call(const X& x) {
    return x;
  }
};
template <int Index, class Part, class... Rest>
struct parts_from<Index, Part, Rest...> {
  template <class X>
  static constexpr auto call(const X& x) {
    return parts_from<Index + 1, Rest...>::call(one_more<Index, Part>(x));
  }
};
template <int Index, class A, class B, class C, class D, class E, class F, class G, class H, class... Rest>
struct parts_from<Index, A, B, C, D, E, F, G, H, Rest...> {
  template <class X>
  static constexpr auto call(const X& x) {
    const auto a = one_more<Index, A>(x);
    const auto b = one_more<Index + 1, B>(a);
    const auto c = one_more<Index + 2, C>(b);
    const auto d = one_more<Index + 3, D>(c);
    const auto e = one_more<Index + 4, E>(d);
    const auto f = one_more<Index + 5, F>(e);
    const auto g = one_more<Index + 6, G>(f);
    return parts_from<Index + 8, Rest...>::call(one_more<Index + 7, H>(g));
  }
};

// A part in a scope that is its own: the keys of a layer are those of the scope.
template <class L>
struct alone_in_scope {
  template <class First, class... Rest>
  constexpr auto operator()(const First& first, const Rest&... rest) const {
    if constexpr (DynamicFlow<First>) return first.in->add(L{}, false, first, rest...);
    else return flowed_through<L>(false, first, rest...);
  }
};
template <class Part>
struct calling_alone {
  template <class... F>
  constexpr auto operator()(const F&... x) const;
};
template <class Part, class First, class... Rest>
constexpr auto called_alone(const First& first, const Rest&... rest) {
  if constexpr (Replaced<typename First::trace_mode, Part>) {
    using instead = replaced_in<typename First::trace_mode, Part>;
    return in_mode<typename First::trace_mode>(called_alone<typename instead::part>(
        in_mode<typename instead::outside>(first), in_mode<typename instead::outside>(rest)...));
  } else if constexpr (kind_of<Part> == kind::layer) return alone_in_scope<Part>{}(first, rest...);
  else if constexpr (Wrapper<Part>) return Part{}.around(calling_alone<typename Part::wraps>{}, first, rest...);
  else if constexpr (is_callable<Part>()) return Part{}(first, rest...);
  else return passed_on<Part>(first, rest...);
}
template <class Part>
template <class... F>
constexpr auto calling_alone<Part>::operator()(const F&... x) const {
  return called_alone<Part>(x...);
}

}  // namespace detail

namespace nn {

/// Parts one after the other, each on what the one before gives; a mistake names its place.
template <class... Parts>
struct chain {
  template <engine::FlowType F>
  constexpr auto operator()(const F& x) const {
    return tessera::detail::parts_from<0, Parts...>::call(x);
  }
};

/// A part under a name in the keys of its parameters, in place of a number: `named<struct encoder, stage<16>>`. One
/// that is shared has the parameters of every other part under this name.
template <class Tag, class Part, bool Shared = false>
struct named {
  static constexpr bool sees_to_its_scope = true;
  static constexpr int results = tessera::detail::result_count<Part>();
  template <engine::FlowType First, engine::FlowType... Rest>
  constexpr auto operator()(const First& first, const Rest&... rest) const {
    const auto back = first.in->enter(engine::short_name_of<Tag>(), Shared);
    const auto y = tessera::detail::called_alone<Part>(first, rest...);
    first.in->leave(back);
    return y;
  }
};

/// Tied weights: `shared<struct embedding, linear<64>>`.
template <class Tag, class Part>
using shared = named<Tag, Part, true>;

}  // namespace nn
}  // namespace tessera
