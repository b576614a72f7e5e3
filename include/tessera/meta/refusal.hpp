#pragma once

#include <tessera/meta/indices.hpp>
#include <tessera/meta/integer.hpp>
#include <tessera/meta/refusal_list.hpp>
#include <tessera/meta/verdicts.hpp>

#include <exception>
#include <type_traits>

namespace tessera {

/// Why something is refused, as a value; `none` means that it is accepted, `refused_before` that what it was made of was refused,
/// so that one mistake is one error.
enum class code : int {
  none,
  refused_before,
#define TESSERA_ENUMERATOR(name, ...) name,
  TESSERA_REFUSALS(TESSERA_ENUMERATOR)
#undef TESSERA_ENUMERATOR
};

/// A verdict as a value: the code and the numbers that do not fit.
///
/// The same predicate serves the compiler, which turns the value into a verdict type (`verdict_of`), and run time, which
/// throws it as an `error`.
struct refusal {
  tessera::code code = tessera::code::none;
  index_t numbers[4]{};
  int count = 0;

  constexpr refusal() = default;
  template <class... Numbers>
  constexpr explicit refusal(tessera::code why, Numbers... given)
      : code(why), numbers{static_cast<index_t>(given)...}, count(sizeof...(Numbers)) {}

  constexpr bool ok() const { return code == tessera::code::none; }
};

/// The first of several refusals that does not accept.
constexpr refusal first_of(const refusal& one) { return one; }
template <class... Rest>
constexpr refusal first_of(const refusal& one, const Rest&... rest) {
  return one.ok() ? first_of(rest...) : one;
}

/// The words of a refusal: its code, its sentence and the names of its numbers; one that ends in "element" numbers an element type,
/// which an error prints by name.
struct refusal_words {
  const char* code;
  const char* sentence;
  const char* numbers;
};

constexpr refusal_words words_of(code why) {
  switch (why) {
#define TESSERA_WORDS(name, text, sentence, numbers) \
  case code::name:                                   \
    return {text, sentence, numbers};
    TESSERA_REFUSALS(TESSERA_WORDS)
#undef TESSERA_WORDS
    case code::none:
    case code::refused_before: break;
  }
  return {"", "", ""};
}

/// What the core throws where only numbers say that something is refused; comm's `error` words them too.
struct refused_value : std::exception {
  explicit refused_value(const refusal& given) : why(given) {}
  const char* what() const noexcept override { return words_of(why.code).sentence; }
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

/// The verdict of what was made of something refused: not accepted, and silent.
struct refused_before {
  static constexpr bool ok = false;
  template <class>
  static constexpr void refuse() {}
};

namespace detail {

template <code Why, index_t... Numbers>
struct verdict_named {
  using type = std::conditional_t<Why == code::none, fits, refused_before>;
};
#define TESSERA_NAMED(name, ...)                 \
  template <index_t... Numbers>                    \
  struct verdict_named<code::name, Numbers...> { \
    using type = tessera::name<Numbers...>;      \
  };
TESSERA_REFUSALS(TESSERA_NAMED)
#undef TESSERA_NAMED

template <class Source, int... I>
auto verdict_from(indices<I...>) ->
    typename verdict_named<Source::value.code, Source::value.numbers[I]...>::type;

}  // namespace detail

/// The verdict type of a constant refusal `Source::value`.
template <class Source>
using verdict_of = decltype(detail::verdict_from<Source>(detail::indices_below<Source::value.count>{}));

}  // namespace tessera
