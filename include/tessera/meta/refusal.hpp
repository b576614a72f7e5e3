#pragma once

#include <tessera/meta/integer.hpp>
#include <tessera/meta/text.hpp>

#include <exception>

namespace tessera {

/// Why something is refused: a code to search for, the names of its numbers, and a sentence: what is wrong; what to do.
///
/// There is one constant for each, in namespace `code`: `FLOOR/refusals.hpp` lists those that a floor makes, and
/// scripts/make_verdicts writes their verdict types into `generated/FLOOR.hpp`. The name "axis" stands for an axis; all
/// other names stand for numbers. A name that ends in "element" or "verb" numbers one of these; one that ends in "or
/// none" may be -1.
struct reason {
  const char* code;
  const char* names;
  const char* sentence;
};

namespace code {

/// An operand was refused before, so that one mistake is one error.
inline constexpr reason refused_before{"", "", ""};

}  // namespace code

/// A verdict as a value: the reason, none of which means that it is accepted, and the axis and the numbers that do not
/// fit.
///
/// The same predicate serves the compiler, which turns the value into a verdict type (`verdict_of`), and run time,
/// which throws it as an `error`.
struct refusal {
  const reason* because = nullptr;
  text axis;
  index_t numbers[4]{};
  int count = 0;

  constexpr refusal() = default;
  template <class... Numbers>
  constexpr explicit refusal(const reason& why, Numbers... given)
      : because(&why), numbers{static_cast<index_t>(given)...}, count(sizeof...(Numbers)) {}
  template <class... Numbers>
  constexpr explicit refusal(const reason& why, const text& which, Numbers... given) : refusal(why, given...) {
    axis = which;
  }

  constexpr bool ok() const { return because == nullptr; }
  constexpr bool is(const reason& why) const { return because == &why; }
};

namespace engine {

/// The first of several refusals that does not accept.
constexpr refusal first_of(const refusal& one) { return one; }
template <class... Rest>
constexpr refusal first_of(const refusal& one, const Rest&... rest) {
  return one.ok() ? first_of(rest...) : one;
}

/// The exception of the core for refusals known by numbers alone; comm's `error` words them too.
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

}  // namespace engine

}  // namespace tessera
