#pragma once

#include <tessera/tensor/box/element_type.hpp>

#include <tessera/tensor/box/aten.hpp>

#include <cstdint>
#include <type_traits>

namespace tessera::engine {

/// x = what changes nothing when it is combined, wherever x lies; unsigned integers may be given as signed ones.
inline void fill_neutral(const at::Tensor& x, element e, combine with) {
  const auto number = [](auto value) {
    using T = decltype(value);
    if constexpr (detail::is_complex_type<T>) return c10::Scalar(c10::complex<double>(value.re, value.im));
    else if constexpr (std::is_integral_v<T> && std::is_unsigned_v<T> && sizeof(T) > 1)
      return c10::Scalar(static_cast<std::int64_t>(static_cast<std::make_signed_t<T>>(value)));
    else return c10::Scalar(value);
  };
  detail::with_type(e, [&](auto zero) {
    x.view(detail::signed_type(e)).fill_(number(detail::neutral<decltype(detail::widened(zero))>(with)));
  });
}

}  // namespace tessera::engine
