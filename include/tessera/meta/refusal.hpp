#pragma once

#include <tessera/meta/indices.hpp>
#include <tessera/meta/integer.hpp>

#include <exception>

namespace tessera {

/// Why something is refused: a code to search for, the names of the numbers, and a sentence that says what is wrong and what to do.
///
/// There is one constant for each, in namespace `code`: `FLOOR/refusals.hpp` lists those that a floor makes, and
/// scripts/make_verdicts writes their verdict types into `FLOOR/verdicts.hpp`. A name that ends in "element" numbers an element type.
struct reason {
  const char* code;
  const char* numbers;
  const char* sentence;
};

namespace code {

/// What something was made of was refused, so that one mistake is one error.
inline constexpr reason refused_before{"", "", ""};

}  // namespace code

/// A verdict as a value: the reason, none of which means that it is accepted, and the numbers that do not fit.
///
/// The same predicate serves the compiler, which turns the value into a verdict type (`verdict_of`), and run time, which
/// throws it as an `error`.
struct refusal {
  const reason* because = nullptr;
  index_t numbers[4]{};
  int count = 0;

  constexpr refusal() = default;
  template <class... Numbers>
  constexpr explicit refusal(const reason& given, Numbers... with)
      : because(&given), numbers{static_cast<index_t>(with)...}, count(sizeof...(Numbers)) {}

  constexpr bool ok() const { return because == nullptr; }
  constexpr bool is(const reason& other) const { return because == &other; }
};

/// The first of several refusals that does not accept.
constexpr refusal first_of(const refusal& one) { return one; }
template <class... Rest>
constexpr refusal first_of(const refusal& one, const Rest&... rest) {
  return one.ok() ? first_of(rest...) : one;
}

/// What the core throws where only numbers say that something is refused; comm's `error` words them too.
struct refused_value : std::exception {
  explicit refused_value(const refusal& given) : why(given) {}
  const char* what() const noexcept override { return why.because->sentence; }
  refusal why;
};

/// Refuses a value: in a constant expression the compiler stops here, and at run time it is thrown.
[[noreturn]] inline void stop(const refusal& why) {
#ifdef __cpp_exceptions
  throw refused_value(why);
#else
  static_cast<void>(why);
  __builtin_abort();
#endif
}

/// The verdict of everything that fits: a verdict type says by `ok` whether the thing it names is accepted.
struct fits {
  static constexpr bool ok = true;
  template <class>
  static constexpr void refuse() {}
};

/// A verdict that does not accept. In `refuse` the compiler stops: it prints the sentence, and the verdict with its numbers and the
/// place it was found at.
struct refused {
  static constexpr bool ok = false;
};

/// The verdict of what was made of something refused: not accepted, and silent.
struct refused_before : refused {
  template <class>
  static constexpr void refuse() {}
};

namespace detail {

template <const reason* Why, index_t... Numbers>
struct verdict_named;
template <>
struct verdict_named<nullptr> {
  using type = fits;
};
template <>
struct verdict_named<&code::refused_before> {
  using type = refused_before;
};

template <class Source, int... I>
auto verdict_from(indices<I...>) -> typename verdict_named<Source::value.because, Source::value.numbers[I]...>::type;

}  // namespace detail

/// The verdict type of a constant refusal `Source::value`.
template <class Source>
using verdict_of = decltype(detail::verdict_from<Source>(detail::indices_below<Source::value.count>{}));

}  // namespace tessera
