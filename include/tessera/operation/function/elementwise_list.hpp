#pragma once

// The elementwise functions, one a line. It has name, dependence on the operands, elements taken, element given, what
// backward reads, its workspace, the computation of boxes x and y. Workspace is how many more tensors as the operand
// there are at once, in forward where booleans are given. Those of a box x and a number n have the name of their
// call behind their own. Activations have options, numbers that are as said unless given. A line has name, what
// backward reads, its workspace, the options, what must hold of them, and what is computed. Types, calls and
// computations are made of these lists.

// clang-format off
#define TESSERA_FUNCTIONS_OF_ONE(f)                                                               \
  f(neg, additive, numbers, same, nothing, 0, at::neg(x))                                         \
  f(abs, nonlinear, numbers, reals, operands, 1, at::abs(x))                                      \
  f(real, additive, numbers, reals, view, 0, at::real(x))                                         \
  f(sign, nonlinear, ordered, same, nothing, 0, at::sign(x))                                      \
  f(square, nonlinear, numbers, same, operands, 2, at::square(x))                                 \
  f(reciprocal, nonlinear, fractions, same, result, 2, at::reciprocal(x))                         \
  f(exp, nonlinear, fractions, same, result, 0, at::exp(x))                                       \
  f(expm1, nonlinear, reals, same, result, 1, at::expm1(x))                                       \
  f(log, nonlinear, fractions, same, operands, 0, at::log(x))                                     \
  f(log1p, nonlinear, reals, same, operands, 1, at::log1p(x))                                     \
  f(log2, nonlinear, reals, same, operands, 1, at::log2(x))                                       \
  f(log10, nonlinear, reals, same, operands, 1, at::log10(x))                                     \
  f(sqrt, nonlinear, fractions, same, result, 1, at::sqrt(x))                                     \
  f(rsqrt, nonlinear, fractions, same, result, 2, at::rsqrt(x))                                   \
  f(sin, nonlinear, fractions, same, operands, 1, at::sin(x))                                     \
  f(cos, nonlinear, fractions, same, operands, 2, at::cos(x))                                     \
  f(tan, nonlinear, fractions, same, result, 2, at::tan(x))                                       \
  f(asin, nonlinear, reals, same, operands, 4, at::asin(x))                                       \
  f(acos, nonlinear, reals, same, operands, 5, at::acos(x))                                       \
  f(atan, nonlinear, reals, same, operands, 2, at::atan(x))                                       \
  f(sinh, nonlinear, fractions, same, operands, 1, at::sinh(x))                                   \
  f(cosh, nonlinear, fractions, same, operands, 1, at::cosh(x))                                   \
  f(tanh, nonlinear, fractions, same, result, 0, at::tanh(x))                                     \
  f(asinh, nonlinear, reals, same, operands, 3, at::asinh(x))                                     \
  f(acosh, nonlinear, reals, same, operands, 3, at::acosh(x))                                     \
  f(atanh, nonlinear, reals, same, operands, 3, at::atanh(x))                                     \
  f(erf, nonlinear, reals, same, operands, 4, at::erf(x))                                         \
  f(erfc, nonlinear, reals, same, operands, 4, at::erfc(x))                                       \
  f(relu, nonlinear, ordered, same, result, 0, at::relu(x))                                       \
  f(relu6, nonlinear, reals, same, operands, 0, at::hardtanh(x, 0, 6))                            \
  f(gelu, nonlinear, reals, same, operands, 0, at::gelu(x))                                       \
  f(gelu_tanh, nonlinear, reals, same, operands, 0, at::gelu(x, "tanh"))                          \
  f(sigmoid, nonlinear, fractions, same, result, 0, at::sigmoid(x))                               \
  f(log_sigmoid, nonlinear, reals, same, operands_and_own, 0, at::log_sigmoid(x))                 \
  f(silu, nonlinear, reals, same, operands, 0, at::silu(x))                                       \
  f(softsign, nonlinear, reals, same, operands_and_own, 3, x / at::abs(x).add_(1))                \
  f(selu, nonlinear, reals, same, operands, 0, at::selu(x))                                       \
  f(mish, nonlinear, reals, same, operands, 0, at::mish(x))                                       \
  f(hardsigmoid, nonlinear, reals, same, operands, 0, tessera::detail::recomposed_hardsigmoid(x)) \
  f(hardswish, nonlinear, reals, same, operands, 0, at::hardswish(x))                             \
  f(floor, nonlinear, ordered, same, nothing, 0, at::floor(x))                                    \
  f(ceil, nonlinear, ordered, same, nothing, 0, at::ceil(x))                                      \
  f(round, nonlinear, ordered, same, nothing, 0, at::round(x))                                    \
  f(trunc, nonlinear, ordered, same, nothing, 0, at::trunc(x))                                    \
  f(frac, nonlinear, reals, same, nothing, 0, at::frac(x))                                        \
  f(isnan, nonlinear, everything, booleans, nothing, 0, at::isnan(x))                             \
  f(isinf, nonlinear, everything, booleans, nothing, 1, at::isinf(x))                             \
  f(isfinite, nonlinear, everything, booleans, nothing, 2, at::isfinite(x))                       \
  f(logical_not, nonlinear, arithmetic, booleans, nothing, 0, at::logical_not(x))
// clang-format on

// clang-format off
#define TESSERA_FUNCTIONS_OF_TWO(f)                                                  \
  f(add, additive, arithmetic, same, passes, 0, at::add(x, y))                       \
  f(sub, additive, numbers, same, nothing, 0, at::sub(x, y))                         \
  f(mul, multilinear, everything, same, operands, 0, at::mul(x, y))                  \
  f(div, nonlinear, fractions, same, operands, 2, at::div(x, y))                     \
  f(pow, nonlinear, numbers, same, everything, 5, at::pow(x, y))                     \
  f(maximum, nonlinear, ordered, same, operands, 2, at::maximum(x, y))               \
  f(minimum, nonlinear, ordered, same, operands, 2, at::minimum(x, y))               \
  f(atan2, nonlinear, reals, same, operands, 5, at::atan2(x, y))                     \
  f(hypot, nonlinear, reals, same, everything, 1, at::hypot(x, y))                   \
  f(fmod, nonlinear, ordered, same, operands, 2, at::fmod(x, y))                     \
  f(remainder, nonlinear, ordered, same, operands, 2, at::remainder(x, y))           \
  f(eq, nonlinear, everything, booleans, nothing, 0, at::eq(x, y))                   \
  f(ne, nonlinear, everything, booleans, nothing, 0, at::ne(x, y))                   \
  f(lt, nonlinear, ordered, booleans, nothing, 0, at::lt(x, y))                      \
  f(le, nonlinear, ordered, booleans, nothing, 0, at::le(x, y))                      \
  f(gt, nonlinear, ordered, booleans, nothing, 0, at::gt(x, y))                      \
  f(ge, nonlinear, ordered, booleans, nothing, 0, at::ge(x, y))                      \
  f(logical_and, nonlinear, arithmetic, booleans, nothing, 0, at::logical_and(x, y)) \
  f(logical_or, nonlinear, arithmetic, booleans, nothing, 0, at::logical_or(x, y))   \
  f(logical_xor, nonlinear, arithmetic, booleans, nothing, 0, at::logical_xor(x, y))
// clang-format on

// clang-format off
#define TESSERA_FUNCTIONS_OF_A_NUMBER(f)                                               \
  f(times, mul, additive, numbers, same, nothing, 0, at::mul(x, n))                    \
  f(divided, div, additive, fractions, same, nothing, 0, at::div(x, n))                \
  f(plus, add, nonlinear, numbers, same, passes, 0, at::add(x, n))                     \
  f(minus, sub, nonlinear, numbers, same, passes, 0, at::sub(x, n))                    \
  f(taken_from, rsub, nonlinear, numbers, same, nothing, 0, at::rsub(x, n))            \
  f(dividing, rdiv, nonlinear, fractions, same, own, 3, at::mul(at::reciprocal(x), n)) \
  f(scale_gradient, scale_gradient, additive, fractions, same, operand, 0,             \
    tessera::detail::with_scaled_gradient(x, n))                                       \
  f(power, pow, nonlinear, numbers, same, operands, 2, at::pow(x, n))                  \
  f(at_least, clamp_min, nonlinear, ordered, same, operands, 1, at::clamp_min(x, n))   \
  f(at_most, clamp_max, nonlinear, ordered, same, operands, 1, at::clamp_max(x, n))    \
  f(equals, eq, nonlinear, numbers, booleans, nothing, 0, at::eq(x, n))                \
  f(differs, ne, nonlinear, numbers, booleans, nothing, 0, at::ne(x, n))               \
  f(less, lt, nonlinear, ordered, booleans, nothing, 0, at::lt(x, n))                  \
  f(not_more, le, nonlinear, ordered, booleans, nothing, 0, at::le(x, n))              \
  f(more, gt, nonlinear, ordered, booleans, nothing, 0, at::gt(x, n))                  \
  f(not_less, ge, nonlinear, ordered, booleans, nothing, 0, at::ge(x, n))
// clang-format on

// clang-format off
#define TESSERA_ACTIVATIONS_OF_A_NUMBER(f)                                     \
  f(leaky_relu, operands, 0, negative_slope, 0.01, true, at::leaky_relu(x, a)) \
  f(elu, operands, 0, alpha, 1, true, at::elu(x, a))                           \
  f(celu, operands, 0, alpha, 1, a != 0, at::celu(x, a))                       \
  f(hardshrink, operands, 0, lambda, 0.5, true, at::hardshrink(x, a))          \
  f(softshrink, operands, 0, lambda, 0.5, a >= 0, at::softshrink(x, a))
// clang-format on

// clang-format off
#define TESSERA_ACTIVATIONS_OF_TWO_NUMBERS(f)                                      \
  f(hardtanh, operands, 0, min_val, -1, max_val, 1, a <= b, at::hardtanh(x, a, b)) \
  f(softplus, operands, 0, beta, 1, threshold, 20, a != 0, at::softplus(x, a, b))  \
  f(threshold, operands, 0, threshold, 0, value, 0, true, at::threshold(x, a, b))
// clang-format on
