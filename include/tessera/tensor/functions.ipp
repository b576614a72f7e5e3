#pragma once

#include <tessera/tensor/functions.hpp>

namespace tessera::functions {

#define TESSERA_FUNCTION(function, kind, elements, result, computed) \
  TESSERA_INLINE at::Tensor compute(const function&, const at::Tensor& x) { return computed; }
TESSERA_FUNCTIONS_OF_ONE(TESSERA_FUNCTION)
#undef TESSERA_FUNCTION
#define TESSERA_FUNCTION(function, kind, elements, result, computed) \
  TESSERA_INLINE at::Tensor compute(const function&, const at::Tensor& x, const at::Tensor& y) { return computed; }
TESSERA_FUNCTIONS_OF_TWO(TESSERA_FUNCTION)
#undef TESSERA_FUNCTION

TESSERA_INLINE at::Scalar scalar_for(const number& n, number_kind kind, const at::Tensor& x) {
  if (kind == number_kind::complex) return c10::complex<double>(n.re, n.im);
  if (x.is_floating_point() || x.is_complex()) return n.re;
  return n.whole;
}

#define TESSERA_FUNCTION(function, called, kind, elements, result, computed) \
  TESSERA_INLINE at::Tensor compute_##function(const at::Tensor& x, const at::Scalar& n) { return computed; }
TESSERA_FUNCTIONS_OF_A_NUMBER(TESSERA_FUNCTION)
#undef TESSERA_FUNCTION

// Terms of half types are added in float.
TESSERA_INLINE at::Tensor sum_over(const at::Tensor& x, at::IntArrayRef dims) {
  return tessera::detail::in_float([dims](const at::Tensor& a) { return at::sum(a, dims, false, a.scalar_type()); }, x);
}
TESSERA_INLINE at::Tensor compute(const matmul&, const at::Tensor& x, const at::Tensor& y) {
  return tessera::detail::in_float([](const at::Tensor& a, const at::Tensor& b) { return at::matmul(a, b); }, x, y);
}

}  // namespace tessera::functions
