#pragma once

#include <tessera/tensor/apply.hpp>

#include <complex>
#include <utility>

namespace tessera {

namespace detail {

template <class N>
inline constexpr bool is_complex_number = false;
template <class T>
inline constexpr bool is_complex_number<std::complex<T>> = true;

}  // namespace detail

/// A number that all workers know.
template <class N>
concept Number = std::is_arithmetic_v<N> || detail::is_complex_number<N>;

namespace detail {

// Whether numbers of a type, multiplied with an element, give the element again: LibTorch would promote fractions times integers.
template <Number N>
constexpr refusal check_number(element e) {
  const bool fits = is_complex(e) || (has_cotangent(e) ? !is_complex_number<N> : e != element::boolean && std::is_integral_v<N>);
  return fits ? refusal{} : refusal{code::number_does_not_fit, static_cast<int>(e)};
}

// Linear, so of terms too if they are those of a sum.
template <class X>
using linear_signature = unary_signature<X::shape_type::rank, linearity::additive>;

template <TensorType X, Number N>
struct scaled_by {
  static constexpr refusal value =
      first_of(described<X>::verdict_source::value, check_number<N>(described<X>::value.element), signature_result<linear_signature<X>, X>::why);
};

template <class E, Number N>
at::Scalar scalar_of(const N& n) {
  if constexpr (std::is_integral_v<E>) {
    if (!std::in_range<E>(+n)) throw error(refusal{code::number_does_not_fit, static_cast<int>(element_of<E>)}, fmt::format("the number {}", +n));
    return static_cast<std::int64_t>(n);
  } else if constexpr (is_complex_number<N>) {
    return c10::complex<double>(n);
  } else {
    return static_cast<double>(n);
  }
}

struct times {
  at::Scalar factor;
  at::Tensor operator()(const at::Tensor& x) const { return x * factor; }
};
struct divided {
  at::Scalar divisor;
  at::Tensor operator()(const at::Tensor& x) const { return x / divisor; }
};

// What a number makes of x.
template <class How, Number Kind, TensorType X, Number N>
auto scaled(const X& x, const N& n) {
  using verdict = verdict_of<scaled_by<X, Kind>>;
  verdict::template refuse<verdict>();
  using E = typename described<X>::element_type;
  if constexpr (verdict::ok) return X(apply(linear_signature<X>::value, How{scalar_of<E>(n)}, x.dynamic()));
  else return refused_like<X>();
}

}  // namespace detail

/// x times a number of its element.
template <TensorType X, Number N>
auto operator*(const X& x, const N& factor) {
  return detail::scaled<detail::times, N>(x, factor);
}
template <Number N, TensorType X>
auto operator*(const N& factor, const X& x) {
  return detail::scaled<detail::times, N>(x, factor);
}

/// x divided by a number; integers have no quotient.
template <TensorType X, Number N>
auto operator/(const X& x, const N& divisor) {
  return detail::scaled<detail::divided, std::conditional_t<std::is_arithmetic_v<N>, double, N>>(x, divisor);
}

/// −x.
template <TensorType X>
auto operator-(const X& x) {
  return detail::typed_apply<detail::linear_signature<X>>(+[](const at::Tensor& a) { return -a; }, x);
}

}  // namespace tessera
