#pragma once

#include <tessera/generated/topology.hpp>
#include <tessera/meta/kind.hpp>

#include <cstdint>
#include <type_traits>

namespace tessera {

/// The element types that C++ has no name for, as bits: IEEE binary16, the upper half of a float, and pairs (re, im).
struct half {
  std::uint16_t bits = 0;
  friend constexpr bool operator==(const half&, const half&) = default;
};
struct bfloat16 {
  std::uint16_t bits = 0;
  friend constexpr bool operator==(const bfloat16&, const bfloat16&) = default;
};
struct complex64 {
  float re = 0;
  float im = 0;
  friend constexpr bool operator==(const complex64&, const complex64&) = default;
};
struct complex128 {
  double re = 0;
  double im = 0;
  friend constexpr bool operator==(const complex128&, const complex128&) = default;
};

/// The element type of a tensor, as a value.
enum class element : signed char {
  float64,
  float32,
  int64,
  int32,
  int16,
  int8,
  uint8,
  boolean,
  float16,
  bfloat16,
  complex64,
  complex128,
  uint16,
  uint32,
  uint64
};

namespace engine {

/// How many elements there are.
inline constexpr int number_of_elements = 15;

}  // namespace engine

namespace detail {

template <class... T>
struct type_list {
  static constexpr int size = sizeof...(T);
};

/// The C++ type of each element, in the order of the enumeration.
using element_types =
    type_list<double, float, std::int64_t, std::int32_t, std::int16_t, std::int8_t, std::uint8_t, bool, half,
              tessera::bfloat16, tessera::complex64, tessera::complex128, std::uint16_t, std::uint32_t, std::uint64_t>;
static_assert(element_types::size == number_of_elements);

template <class T>
constexpr index_t bytes_of_type() {
  if constexpr (requires { sizeof(T); }) return sizeof(T);
  else return 0;
}

// The place of a type in the list, or its length.
template <class T, class... Known>
constexpr int place_in(type_list<Known...>) {
  int index = 0;
  static_cast<void>(((std::is_same_v<T, Known> || (++index, false)) || ...));
  return index;
}

// Whether a tensor can hold this type; tensor types ask.
template <class T>
inline constexpr bool is_element = place_in<T>(element_types{}) < number_of_elements;

}  // namespace detail

template <>
inline constexpr kind engine::kind_of<double> = kind::element;
template <>
inline constexpr kind engine::kind_of<float> = kind::element;
template <>
inline constexpr kind engine::kind_of<std::int64_t> = kind::element;
template <>
inline constexpr kind engine::kind_of<std::int32_t> = kind::element;
template <>
inline constexpr kind engine::kind_of<std::int16_t> = kind::element;
template <>
inline constexpr kind engine::kind_of<std::int8_t> = kind::element;
template <>
inline constexpr kind engine::kind_of<std::uint8_t> = kind::element;
template <>
inline constexpr kind engine::kind_of<bool> = kind::element;
template <>
inline constexpr kind engine::kind_of<half> = kind::element;
template <>
inline constexpr kind engine::kind_of<bfloat16> = kind::element;
template <>
inline constexpr kind engine::kind_of<complex64> = kind::element;
template <>
inline constexpr kind engine::kind_of<complex128> = kind::element;
template <>
inline constexpr kind engine::kind_of<std::uint16_t> = kind::element;
template <>
inline constexpr kind engine::kind_of<std::uint32_t> = kind::element;
template <>
inline constexpr kind engine::kind_of<std::uint64_t> = kind::element;

namespace detail {

template <int I, class First, class... Rest>
auto type_at(type_list<First, Rest...>) {
  if constexpr (I == 0) return First{};
  else return type_at<I - 1>(type_list<Rest...>{});
}

template <class... T>
constexpr index_t bytes_at(int index, type_list<T...>) {
  constexpr index_t bytes[]{sizeof(T)...};
  return bytes[index];
}

}  // namespace detail

namespace engine {

/// How many bytes an element takes.
constexpr index_t bytes_of(element e) { return detail::bytes_at(static_cast<int>(e), detail::element_types{}); }

/// LibTorch computes with no unsigned integers but bytes. Their bits serve, as integers wrap.
constexpr bool is_wide_unsigned(element e) {
  return e == element::uint16 || e == element::uint32 || e == element::uint64;
}
constexpr bool is_half(element e) { return e == element::float16 || e == element::bfloat16; }
constexpr bool is_complex(element e) { return e == element::complex64 || e == element::complex128; }

/// Integers and booleans have no cotangent: nothing is sent backward for them.
constexpr bool has_cotangent(element e) {
  return e == element::float64 || e == element::float32 || is_half(e) || is_complex(e);
}

/// In what terms of this element are combined: the next wider type, so that a sum is rounded once however many terms it
/// has.
constexpr element sums_in(element e) {
  if (is_half(e)) return element::float32;
  if (e == element::float32) return element::float64;
  return e == element::complex64 ? element::complex128 : e;
}

constexpr const char* name_of(element e) {
  constexpr const char* names[]{"double", "float",    "int64",     "int32",      "int16",  "int8",   "uint8", "bool",
                                "half",   "bfloat16", "complex64", "complex128", "uint16", "uint32", "uint64"};
  return names[static_cast<int>(e)];
}

/// The element value of a C++ type; of one that no tensor can hold, bool.
template <class T>
inline constexpr element element_of =
    detail::is_element<T> ? static_cast<element>(detail::place_in<T>(detail::element_types{})) : element::boolean;

/// The C++ type of an element value.
template <element E>
using element_type = decltype(detail::type_at<static_cast<int>(E)>(detail::element_types{}));

}  // namespace engine

}  // namespace tessera
