#pragma once

#include <tessera/meta/refusal.hpp>

namespace tessera {

/// The verdict of everything that fits.
///
/// A verdict type says by `ok` whether the thing it names is accepted. `refuse` stops the compiler where it is not
/// accepted. The compiler then prints the sentence and `Where`: the verdict, its numbers and the place that found it.
struct fits {
  static constexpr bool ok = true;
  template <class>
  static constexpr void refuse() {}
};

namespace engine {

/// The verdict of what was made of something refused: not accepted, and silent.
struct refused_before {
  static constexpr bool ok = false;
  template <class>
  static constexpr void refuse() {}
};

}  // namespace engine

/// The arguments of verdicts, by name: `with::dimension<2>`.
namespace with {

struct none;

}  // namespace with

namespace detail {

/// A constant refusal, and the types which name its axis.
template <class Source, class... Named>
struct constant_refusal {
  static constexpr index_t number(int i) { return Source::value.numbers[i]; }
};

/// The axis of a constant refusal, as a type; the floor that has axes says which.
template <class Refusal>
struct axis_of_refusal;

template <template <index_t> class Number, index_t N>
struct number_or_none {
  using type = Number<N>;
};
template <template <index_t> class Number>
struct number_or_none<Number, -1> {
  using type = with::none;
};

/// The verdict type of a reason, from what is told with it.
template <const reason* Why>
struct verdict_for;
template <>
struct verdict_for<nullptr> {
  template <class>
  using type = fits;
};
template <>
struct verdict_for<&code::refused_before> {
  template <class>
  using type = refused_before;
};

}  // namespace detail

namespace engine {

/// The verdict type of a constant refusal `Source::value`; its axis is one that `Source` or the other types name.
template <class Source, class... Named>
using verdict_of =
    typename detail::verdict_for<Source::value.because>::template type<detail::constant_refusal<Source, Named...>>;

}  // namespace engine

}  // namespace tessera
