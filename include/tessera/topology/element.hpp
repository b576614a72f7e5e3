#pragma once

#include <tessera/meta/integer.hpp>

#include <cstdint>
#include <type_traits>

namespace tessera {

/// The element type of a tensor, as a value.
enum class element : signed char { float64, float32, int64, int32, int16, int8, uint8, boolean };

constexpr index_t bytes_of(element e) {
  switch (e) {
    case element::float64:
    case element::int64: return 8;
    case element::float32:
    case element::int32: return 4;
    case element::int16: return 2;
    case element::int8:
    case element::uint8:
    case element::boolean: return 1;
  }
  return 0;
}

/// Integers and booleans have no cotangent: nothing is sent backward for them.
constexpr bool has_cotangent(element e) { return e == element::float64 || e == element::float32; }

constexpr const char* name_of(element e) {
  constexpr const char* names[]{"double", "float", "int64", "int32", "int16", "int8", "uint8", "bool"};
  return names[static_cast<int>(e)];
}

namespace detail {

template <class T, class... Known>
inline constexpr bool is_one_of = (std::is_same_v<T, Known> || ...);

// Whether a tensor can hold this type; tensor types ask.
template <class T>
inline constexpr bool is_element =
    is_one_of<T, double, float, std::int64_t, std::int32_t, std::int16_t, std::int8_t, std::uint8_t, bool>;

template <class T>
constexpr element element_for() {
  if constexpr (std::is_same_v<T, double>) return element::float64;
  else if constexpr (std::is_same_v<T, float>) return element::float32;
  else if constexpr (std::is_same_v<T, std::int64_t>) return element::int64;
  else if constexpr (std::is_same_v<T, std::int32_t>) return element::int32;
  else if constexpr (std::is_same_v<T, std::int16_t>) return element::int16;
  else if constexpr (std::is_same_v<T, std::int8_t>) return element::int8;
  else if constexpr (std::is_same_v<T, std::uint8_t>) return element::uint8;
  else return element::boolean;
}

}  // namespace detail

/// The element value of a C++ type.
template <class T>
inline constexpr element element_of = detail::element_for<T>();

}  // namespace tessera
