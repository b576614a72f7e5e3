#pragma once

#include <tessera/topology/element.hpp>
#include <tessera/topology/layout.hpp>

#include <bit>
#include <limits>
#include <type_traits>

namespace tessera {

namespace engine {

/// The float of a half: exact.
constexpr float to_float(half h) {
  const std::uint32_t sign = static_cast<std::uint32_t>(h.bits & 0x8000u) << 16;
  const std::uint32_t exponent = h.bits >> 10 & 31u;
  const std::uint32_t mantissa = h.bits & 0x3ffu;
  if (exponent == 31) return std::bit_cast<float>(sign | 0x7f800000u | mantissa << 13);
  if (exponent != 0) return std::bit_cast<float>(sign | (exponent + 112) << 23 | mantissa << 13);
  const float tiny = static_cast<float>(mantissa) * 0x1p-24f;
  return sign != 0 ? -tiny : tiny;
}
constexpr float to_float(bfloat16 b) { return std::bit_cast<float>(static_cast<std::uint32_t>(b.bits) << 16); }

}  // namespace engine

namespace detail {

// `kept` with the bits below it, of which `half_way` is the highest, rounded to nearest, ties to even.
constexpr std::uint32_t rounded(std::uint32_t kept, std::uint32_t below, std::uint32_t half_way) {
  return kept + (below > half_way || (below == half_way && (kept & 1u) != 0) ? 1 : 0);
}

constexpr half round_to(half, float f) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(f);
  const std::uint32_t sign = bits >> 16 & 0x8000u;
  const std::uint32_t magnitude = bits & 0x7fffffffu;
  std::uint32_t h = 0;
  if (magnitude > 0x7f800000u) {
    h = 0x7e00u;
  } else if (magnitude >= 0x47800000u) {  // 2^16 and more
    h = 0x7c00u;
  } else if (magnitude >= 0x38800000u) {  // 2^-14: a carry goes on into the exponent, and at the end to infinity
    const std::uint32_t rebased = magnitude - 0x38000000u;
    h = rounded(rebased >> 13, rebased & 0x1fffu, 0x1000u);
  } else if (magnitude >= 0x33000000u) {  // 2^-25: subnormal, in units of 2^-24
    const std::uint32_t shift = 126 - (magnitude >> 23);
    const std::uint32_t mantissa = (magnitude & 0x7fffffu) | 0x800000u;
    h = rounded(mantissa >> shift, mantissa & ((1u << shift) - 1), 1u << (shift - 1));
  }
  return {static_cast<std::uint16_t>(sign | h)};
}

constexpr bfloat16 round_to(bfloat16, float f) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(f);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return {0x7fc0u};
  return {static_cast<std::uint16_t>(rounded(bits >> 16, bits & 0xffffu, 0x8000u))};
}

}  // namespace detail

namespace engine {

/// The half nearest to a float, ties to even; beyond the largest one infinity.
constexpr half to_half(float f) { return detail::round_to(half{}, f); }
constexpr bfloat16 to_bfloat16(float f) { return detail::round_to(bfloat16{}, f); }

}  // namespace engine

namespace detail {

template <class T>
inline constexpr bool is_half_type = std::is_same_v<T, half> || std::is_same_v<T, bfloat16>;
template <class T>
inline constexpr bool is_complex_type = std::is_same_v<T, complex64> || std::is_same_v<T, complex128>;

/// A value as arithmetic takes it: half types as float.
template <class T>
constexpr auto widened(T x) {
  if constexpr (is_half_type<T>) return to_float(x);
  else return x;
}

/// A value in the type of another element, wider or narrower: rounded to nearest where it is narrower.
template <class T, class From>
constexpr T stored(From x) {
  if constexpr (is_half_type<From> && !is_half_type<T>) return static_cast<T>(to_float(x));
  else if constexpr (is_half_type<T> && !is_half_type<From>) return round_to(T{}, static_cast<float>(x));
  else if constexpr (is_complex_type<T>)
    return {static_cast<decltype(T::re)>(x.re), static_cast<decltype(T::re)>(x.im)};
  else return static_cast<T>(x);
}

template <class T>
constexpr T added(T a, T b) {
  if constexpr (is_complex_type<T>) return {a.re + b.re, a.im + b.im};
  else if constexpr (std::is_same_v<T, bool>) return a || b;
  else if constexpr (std::is_integral_v<T>)
    return static_cast<T>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
  else return a + b;
}

template <class T>
constexpr T multiplied(T a, T b) {
  if constexpr (is_complex_type<T>) return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
  else if constexpr (std::is_same_v<T, bool>) return a && b;
  else if constexpr (std::is_integral_v<T>)
    return static_cast<T>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b));
  else return a * b;
}

template <class T>
constexpr T truth(bool b) {
  if constexpr (is_complex_type<T>) return {static_cast<decltype(T::re)>(b), 0};
  else return static_cast<T>(b);
}

/// a combined with b; integers wrap, what is no number stays so. Complex numbers have no maximum (`check_combine`
/// refuses it).
template <class T>
constexpr T combined(T a, T b, combine with) {
  switch (with) {
    case combine::max:
      if constexpr (!is_complex_type<T>) return a < b || b != b ? b : a;
      break;
    case combine::min:
      if constexpr (!is_complex_type<T>) return b < a || b != b ? b : a;
      break;
    case combine::prod: return multiplied(a, b);
    case combine::any: return truth<T>(a != T{} || b != T{});
    case combine::all: return truth<T>(a != T{} && b != T{});
    case combine::sum: break;
  }
  return added(a, b);
}

/// The neutral element of a combine.
template <class T>
constexpr T neutral(combine with) {
  using limits = std::numeric_limits<T>;
  switch (with) {
    case combine::max:
      if constexpr (!is_complex_type<T>) return limits::has_infinity ? -limits::infinity() : limits::lowest();
      break;
    case combine::min:
      if constexpr (!is_complex_type<T>) return limits::has_infinity ? limits::infinity() : limits::max();
      break;
    case combine::prod:
    case combine::all: return truth<T>(true);
    case combine::any:
    case combine::sum: break;
  }
  return T{};
}

}  // namespace detail
}  // namespace tessera
