#pragma once

#include <tessera/operation/plan/function.hpp>

namespace tessera {

namespace detail {

template <class N>
inline constexpr bool is_complex_number = requires(const N& n) {
  typename N::value_type;
  requires std::is_floating_point_v<typename N::value_type>;
  static_cast<typename N::value_type>(n.real() + n.imag());
};

}  // namespace detail

namespace engine {

/// A number that all workers know.
template <class N>
concept Number = std::is_arithmetic_v<N> || detail::is_complex_number<N>;

}  // namespace engine

namespace functions::engine {

/// The kind of a number, from its type.
enum class number_kind : signed char { integer, real, complex };

/// The kind of a type of numbers.
template <Number N>
inline constexpr number_kind kind_of_number = tessera::detail::is_complex_number<N> ? number_kind::complex
                                              : std::is_integral_v<N>               ? number_kind::integer
                                                                                    : number_kind::real;

/// A number that a function holds.
struct number {
  double re = 0;
  double im = 0;
  index_t whole = 0;   ///< of an integer, modulo 2^64
  bool large = false;  ///< an integer of 2^63 and more

  constexpr number() = default;
  template <Number N>
  constexpr number(const N& n) {
    if constexpr (tessera::detail::is_complex_number<N>) {
      re = static_cast<double>(n.real());
      im = static_cast<double>(n.imag());
    } else {
      re = static_cast<double>(n);
      if constexpr (std::is_integral_v<N>) {
        whole = static_cast<index_t>(n);
        large = n > 0 && whole < 0;
      }
    }
  }
};

/// Whether an integer is one of an element.
constexpr bool in_range(const number& n, element e) {
  if (e == element::uint64) return n.large || n.whole >= 0;
  const bool is_unsigned = e == element::uint8 || e == element::uint16 || e == element::uint32;
  const int bits = static_cast<int>(8 * bytes_of(e));
  if (n.large || e == element::int64) return !n.large;
  const index_t end = index_t{1} << (is_unsigned ? bits : bits - 1);
  return n.whole < end && n.whole >= (is_unsigned ? 0 : -end);
}

/// Whether a number, combined with an element, gives the element again: LibTorch would promote fractions and integers
/// together.
constexpr refusal check_number(number_kind kind, const number& n, element e) {
  const bool fits =
      is_complex(e) || (has_cotangent(e) ? kind != number_kind::complex
                                         : e != element::boolean && kind == number_kind::integer && in_range(n, e));
  return fits ? refusal{} : refusal{code::number_does_not_fit, static_cast<int>(e)};
}

}  // namespace functions::engine

}  // namespace tessera
