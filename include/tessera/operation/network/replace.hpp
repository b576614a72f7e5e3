#pragma once

#include <tessera/operation/network/sharded_parameters.hpp>

#include <concepts>

namespace tessera {

namespace detail {

// Whether a predicate holds for a part: it is asked of the part itself or, if it takes no such part, of a layer's name.
template <class Predicate, class Part>
constexpr bool holds_for() {
  if constexpr (!known_by_type<Part>() || requires { Part::is_function; }) {
    return false;
  } else if constexpr (requires(const Part& part) {
                         { Predicate{}(part) } -> std::convertible_to<bool>;
                       }) {
    return Predicate{}(Part{});
  } else if constexpr (kind_of<Part> == kind::layer && std::predicate<Predicate, const char*>) {
    return Predicate{}(Part::name);
  } else {
    return false;
  }
}

// The part that is read in place of one: always the same, or what a rule makes of it.
template <class Instead, class Part>
struct read_instead {
  using type = Instead;
};
template <class Instead, class Part>
  requires requires { typename Instead::template in_place_of<Part>; }
struct read_instead<Instead, Part> {
  using type = typename Instead::template in_place_of<Part>;
};

/// Notes parts as another mode does, with some of them replaced.
template <class Mode, class Predicate, class Instead>
struct replacing_mode {
  using on = Mode;
  using record = typename Mode::record;
  template <class L>
  using in_place_of = L;
  template <class On>
  static constexpr const record* record_of() {
    return Mode::template record_of<On>();
  }
};

template <class Mode, class Predicate, class Instead>
inline constexpr bool replaces_parts<replacing_mode<Mode, Predicate, Instead>> = true;
template <class Mode, class... Axes>
inline constexpr bool replaces_parts<tiles_mode<Mode, Axes...>> = replaces_parts<Mode>;
template <class Mode, class Predicate, class Instead, class Part>
  requires(holds_for<Predicate, Part>())
struct replaced_in<replacing_mode<Mode, Predicate, Instead>, Part> {
  static constexpr bool value = true;
  using part = typename read_instead<Instead, Part>::type;
  using outside = Mode;
};
template <class Mode, class Predicate, class Instead, class Part>
  requires(!holds_for<Predicate, Part>() && replaced_in<Mode, Part>::value)
struct replaced_in<replacing_mode<Mode, Predicate, Instead>, Part> {
  static constexpr bool value = true;
  using part = typename replaced_in<Mode, Part>::part;
  using outside = replacing_mode<typename replaced_in<Mode, Part>::outside, Predicate, Instead>;
};
template <class Mode, class... Axes, class Part>
  requires(replaced_in<Mode, Part>::value)
struct replaced_in<tiles_mode<Mode, Axes...>, Part> {
  static constexpr bool value = true;
  using part = typename replaced_in<Mode, Part>::part;
  using outside = tiles_mode<typename replaced_in<Mode, Part>::outside, Axes...>;
};

}  // namespace detail

namespace nn {

/// A module that is read with other parts in place of some: `replace<net, is_relu, gelu>` reads each relu as a gelu.
///
/// `Predicate` is a constexpr function of a part, or of the name of a layer; of what it does not take it does not hold.
/// Layers and modules are asked, each in its place, and functions of flows are not. What is replaced is not entered,
/// nor is what stands there instead. `Instead` is a layer or a module, or a rule: a type with `template <class Part>
/// using in_place_of = …`. Places in the keys of parameters are those of the module. In a program that is put together
/// while it runs the predicate is one of names.
template <class Part, class Predicate, class Instead>
struct replace {
  using wraps = Part;
  static constexpr int results = tessera::detail::result_count<Part>();
  static constexpr Part inside() { return {}; }
  template <class Call, engine::FlowType First, engine::FlowType... Rest>
  constexpr auto around(const Call& call, const First& first, const Rest&... rest) const {
    if constexpr (engine::DynamicFlow<First>) {
      static_assert(std::predicate<Predicate, const char*>,
                    "in a program that is put together while it runs a predicate is asked of the names of layers");
      return first.in->replacing([](const auto& layer) { return Predicate{}(layer.name); }, Instead{},
                                 [&] { return call(first, rest...); });
    } else {
      using mode = typename First::trace_mode;
      using reads = tessera::detail::replacing_mode<mode, Predicate, Instead>;
      const auto y = call(tessera::detail::in_mode<reads>(first), tessera::detail::in_mode<reads>(rest)...);
      return tessera::detail::in_mode<mode>(y);
    }
  }
  template <engine::FlowType... F>
  constexpr auto operator()(const F&... x) const {
    return around(tessera::detail::module_of<Part>{}, x...);
  }
};

}  // namespace nn
}  // namespace tessera
