#pragma once

#include <tessera/operation/program/chain.hpp>

namespace tessera::detail {

// A chain, also under a name of its own.
template <class Part>
struct is_chain : std::false_type {};
template <class... Parts>
struct is_chain<nn::chain<Parts...>> : std::true_type {
  using chain = nn::chain<Parts...>;
  static constexpr auto enter(auto& in) { return in.enter(); }
};
template <class Tag, bool Shared, class... Parts>
struct is_chain<nn::named<Tag, nn::chain<Parts...>, Shared>> : std::true_type {
  using chain = nn::chain<Parts...>;
  static constexpr auto enter(auto& in) { return in.enter(engine::short_name_of<Tag>(), Shared); }
};

// The parts that are shared out: those of a chain, and of a chain in it.
template <class Part>
inline constexpr int units_of = 1;
template <class... Parts>
inline constexpr int units_of<nn::chain<Parts...>> = (units_of<Parts> + ... + 0);
template <class Tag, bool Shared, class... Parts>
inline constexpr int units_of<nn::named<Tag, nn::chain<Parts...>, Shared>> = units_of<nn::chain<Parts...>>;

template <class X>
inline constexpr bool is_refused = !X::verdict::ok;
template <class... F>
inline constexpr bool is_refused<flows<F...>> = (is_refused<F> || ...);

template <class T, class Mode, class Verdict, class Call>
constexpr auto with_flows(const flow<T, Mode, Verdict>& x, const Call& call) {
  return call(x);
}
template <class... F, class Call>
constexpr auto with_flows(const flows<F...>& all, const Call& call) {
  return [&]<int... Index>(indices<Index...>) {
    return call(get<Index>(all)...);
  }(indices_below<static_cast<int>(sizeof...(F))>{});
}
template <class F>
constexpr const F& first_flow(const F& x) {
  return x;
}
template <class First, class... Rest>
constexpr const First& first_flow(const flows<First, Rest...>& all) {
  return all.first;
}

// A part on all that the one before gave.
template <class Part, class X>
constexpr auto passed_through(const X& x) {
  return with_flows(x, [](const auto&... one) { return passed_on<Part>(one...); });
}

// What has come through some parts of a chain, on its way; a refused flow passes the rest by.
template <class Walk, class X>
struct on_its_way {
  Walk walk;
  X x;
};

template <class Chain, int First, class Walk, class X>
constexpr auto walked(const Walk& walk, const X& x);

template <int Unit, int Index, class Part>
struct one_unit {};

template <int Unit, int Index, class Part, class Walk, class X>
constexpr auto operator<<(const on_its_way<Walk, X>& so_far, one_unit<Unit, Index, Part>) {
  if constexpr (is_refused<X>) {
    return so_far;
  } else {
    const auto y = [&] {
      if constexpr (is_chain<Part>::value) {
        auto& in = *first_flow(so_far.x).in;
        const auto back = is_chain<Part>::enter(in);
        const auto all = walked<typename is_chain<Part>::chain, Unit>(so_far.walk, so_far.x);
        in.leave(back);
        return all;
      } else {
        return so_far.walk.template unit<Unit, Part>(so_far.x);
      }
    }();
    const auto placed = located<Index, Part>(y);
    return on_its_way<Walk, std::remove_const_t<decltype(placed)>>{so_far.walk, placed};
  }
}

// The units before each part of a chain.
template <class... Parts>
struct units_before {
  static constexpr int at(int part) {
    constexpr int each[]{units_of<Parts>..., 0};
    int all = 0;
    for (int i = 0; i < part; ++i) all += each[i];
    return all;
  }
};

template <int First, class Walk, class X, class... Parts, int... Index>
constexpr auto walked_parts(const Walk& walk, const X& x, std::type_identity<nn::chain<Parts...>>, indices<Index...>) {
  return (on_its_way<Walk, X>{walk, x} << ... << one_unit<First + units_before<Parts...>::at(Index), Index, Parts>{}).x;
}
template <class Chain, int First, class Walk, class X>
constexpr auto walked(const Walk& walk, const X& x) {
  return [&]<class... Parts>(std::type_identity<nn::chain<Parts...>> all) {
    return walked_parts<First>(walk, x, all, indices_below<static_cast<int>(sizeof...(Parts))>{});
  }(std::type_identity<Chain>{});
}

}  // namespace tessera::detail
