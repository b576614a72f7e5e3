#pragma once

// The elementwise functions, one a line: name, dependence on the operands, elements taken, element given, what backward
// reads, the computation of boxes x and y. Those of a box x and a number n have the name of their call behind their
// own. Activations have options, numbers that are as said unless given: name, what backward reads, the options, what
// must hold of them, and what is computed. Types, calls and computations are made of these lists.

// clang-format off
#define TESSERA_FUNCTIONS_OF_ONE(f)                                                 \
  f(neg, additive, numbers, same, nothing, at::neg(x))                              \
  f(abs, nonlinear, numbers, reals, operands, at::abs(x))                           \
  f(real, additive, numbers, reals, view, at::real(x))                              \
  f(sign, nonlinear, ordered, same, nothing, at::sign(x))                           \
  f(square, nonlinear, numbers, same, operands, at::square(x))                      \
  f(reciprocal, nonlinear, fractions, same, result, at::reciprocal(x))              \
  f(exp, nonlinear, fractions, same, result, at::exp(x))                            \
  f(expm1, nonlinear, reals, same, result, at::expm1(x))                            \
  f(log, nonlinear, fractions, same, operands, at::log(x))                          \
  f(log1p, nonlinear, reals, same, operands, at::log1p(x))                          \
  f(log2, nonlinear, reals, same, operands, at::log2(x))                            \
  f(log10, nonlinear, reals, same, operands, at::log10(x))                          \
  f(sqrt, nonlinear, fractions, same, result, at::sqrt(x))                          \
  f(rsqrt, nonlinear, fractions, same, result, at::rsqrt(x))                        \
  f(sin, nonlinear, fractions, same, operands, at::sin(x))                          \
  f(cos, nonlinear, fractions, same, operands, at::cos(x))                          \
  f(tan, nonlinear, fractions, same, result, at::tan(x))                            \
  f(asin, nonlinear, reals, same, operands, at::asin(x))                            \
  f(acos, nonlinear, reals, same, operands, at::acos(x))                            \
  f(atan, nonlinear, reals, same, operands, at::atan(x))                            \
  f(sinh, nonlinear, fractions, same, operands, at::sinh(x))                        \
  f(cosh, nonlinear, fractions, same, operands, at::cosh(x))                        \
  f(tanh, nonlinear, fractions, same, result, at::tanh(x))                          \
  f(asinh, nonlinear, reals, same, operands, at::asinh(x))                          \
  f(acosh, nonlinear, reals, same, operands, at::acosh(x))                          \
  f(atanh, nonlinear, reals, same, operands, at::atanh(x))                          \
  f(erf, nonlinear, reals, same, operands, at::erf(x))                              \
  f(erfc, nonlinear, reals, same, operands, at::erfc(x))                            \
  f(relu, nonlinear, ordered, same, result, at::relu(x))                            \
  f(relu6, nonlinear, reals, same, operands, at::hardtanh(x, 0, 6))                 \
  f(gelu, nonlinear, reals, same, operands, at::gelu(x))                            \
  f(gelu_tanh, nonlinear, reals, same, operands, at::gelu(x, "tanh"))               \
  f(sigmoid, nonlinear, fractions, same, result, at::sigmoid(x))                    \
  f(log_sigmoid, nonlinear, reals, same, everything, at::log_sigmoid(x))            \
  f(silu, nonlinear, reals, same, operands, at::silu(x))                            \
  f(softsign, nonlinear, reals, same, everything, x / (1 + at::abs(x)))             \
  f(selu, nonlinear, reals, same, operands, at::selu(x))                            \
  f(mish, nonlinear, reals, same, operands, at::mish(x))                            \
  f(hardsigmoid, nonlinear, reals, same, operands, tessera::detail::recomposed_hardsigmoid(x)) \
  f(hardswish, nonlinear, reals, same, operands, at::hardswish(x))                  \
  f(floor, nonlinear, ordered, same, nothing, at::floor(x))                         \
  f(ceil, nonlinear, ordered, same, nothing, at::ceil(x))                           \
  f(round, nonlinear, ordered, same, nothing, at::round(x))                         \
  f(trunc, nonlinear, ordered, same, nothing, at::trunc(x))                         \
  f(frac, nonlinear, reals, same, nothing, at::frac(x))                             \
  f(isnan, nonlinear, everything, booleans, nothing, at::isnan(x))                  \
  f(isinf, nonlinear, everything, booleans, nothing, at::isinf(x))                  \
  f(isfinite, nonlinear, everything, booleans, nothing, at::isfinite(x))            \
  f(logical_not, nonlinear, arithmetic, booleans, nothing, at::logical_not(x))
// clang-format on

// clang-format off
#define TESSERA_FUNCTIONS_OF_TWO(f)                                               \
  f(add, additive, arithmetic, same, passes, at::add(x, y))                       \
  f(sub, additive, numbers, same, nothing, at::sub(x, y))                         \
  f(mul, multilinear, everything, same, operands, at::mul(x, y))                  \
  f(div, nonlinear, fractions, same, operands, at::div(x, y))                     \
  f(pow, nonlinear, numbers, same, everything, at::pow(x, y))                     \
  f(maximum, nonlinear, ordered, same, operands, at::maximum(x, y))               \
  f(minimum, nonlinear, ordered, same, operands, at::minimum(x, y))               \
  f(atan2, nonlinear, reals, same, operands, at::atan2(x, y))                     \
  f(hypot, nonlinear, reals, same, everything, at::hypot(x, y))                   \
  f(fmod, nonlinear, ordered, same, operands, at::fmod(x, y))                     \
  f(remainder, nonlinear, ordered, same, operands, at::remainder(x, y))           \
  f(eq, nonlinear, everything, booleans, nothing, at::eq(x, y))                   \
  f(ne, nonlinear, everything, booleans, nothing, at::ne(x, y))                   \
  f(lt, nonlinear, ordered, booleans, nothing, at::lt(x, y))                      \
  f(le, nonlinear, ordered, booleans, nothing, at::le(x, y))                      \
  f(gt, nonlinear, ordered, booleans, nothing, at::gt(x, y))                      \
  f(ge, nonlinear, ordered, booleans, nothing, at::ge(x, y))                      \
  f(logical_and, nonlinear, arithmetic, booleans, nothing, at::logical_and(x, y)) \
  f(logical_or, nonlinear, arithmetic, booleans, nothing, at::logical_or(x, y))   \
  f(logical_xor, nonlinear, arithmetic, booleans, nothing, at::logical_xor(x, y))
// clang-format on

// clang-format off
#define TESSERA_FUNCTIONS_OF_A_NUMBER(f)                                               \
  f(times, mul, additive, numbers, same, nothing, at::mul(x, n))                       \
  f(divided, div, additive, fractions, same, nothing, at::div(x, n))                   \
  f(plus, add, nonlinear, numbers, same, passes, at::add(x, n))                        \
  f(minus, sub, nonlinear, numbers, same, passes, at::sub(x, n))                       \
  f(taken_from, rsub, nonlinear, numbers, same, nothing, at::rsub(x, n))               \
  f(dividing, rdiv, nonlinear, fractions, same, result, at::mul(at::reciprocal(x), n)) \
  f(scale_gradient, scale_gradient, additive, fractions, same, operand,                \
    tessera::detail::with_scaled_gradient(x, n))                                       \
  f(power, pow, nonlinear, numbers, same, operands, at::pow(x, n))                     \
  f(at_least, clamp_min, nonlinear, ordered, same, operands, at::clamp_min(x, n))      \
  f(at_most, clamp_max, nonlinear, ordered, same, operands, at::clamp_max(x, n))       \
  f(equals, eq, nonlinear, numbers, booleans, nothing, at::eq(x, n))                   \
  f(differs, ne, nonlinear, numbers, booleans, nothing, at::ne(x, n))                  \
  f(less, lt, nonlinear, ordered, booleans, nothing, at::lt(x, n))                     \
  f(not_more, le, nonlinear, ordered, booleans, nothing, at::le(x, n))                 \
  f(more, gt, nonlinear, ordered, booleans, nothing, at::gt(x, n))                     \
  f(not_less, ge, nonlinear, ordered, booleans, nothing, at::ge(x, n))
// clang-format on

// clang-format off
#define TESSERA_ACTIVATIONS_OF_A_NUMBER(f)                                  \
  f(leaky_relu, operands, negative_slope, 0.01, true, at::leaky_relu(x, a)) \
  f(elu, operands, alpha, 1, true, at::elu(x, a))                           \
  f(celu, operands, alpha, 1, a != 0, at::celu(x, a))                       \
  f(hardshrink, operands, lambda, 0.5, true, at::hardshrink(x, a))          \
  f(softshrink, operands, lambda, 0.5, a >= 0, at::softshrink(x, a))
// clang-format on

// clang-format off
#define TESSERA_ACTIVATIONS_OF_TWO_NUMBERS(f)                                   \
  f(hardtanh, operands, min_val, -1, max_val, 1, a <= b, at::hardtanh(x, a, b)) \
  f(softplus, operands, beta, 1, threshold, 20, a != 0, at::softplus(x, a, b))  \
  f(threshold, operands, threshold, 0, value, 0, true, at::threshold(x, a, b))
// clang-format on
