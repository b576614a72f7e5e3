#pragma once

// The functions that act element by element, each in one line: name, how it depends on its operands, which elements it takes, which it
// gives, and what it computes of boxes x and y. Those of a box x and a number n have the name of their call behind their own. Types,
// calls and computations are made of these lists.

#define TESSERA_FUNCTIONS_OF_ONE(f)                                        \
  f(neg, additive, numbers, same, at::neg(x))                              \
  f(abs, nonlinear, numbers, reals, at::abs(x))                            \
  f(sign, nonlinear, ordered, same, at::sign(x))                           \
  f(square, nonlinear, numbers, same, at::square(x))                       \
  f(reciprocal, nonlinear, fractions, same, at::reciprocal(x))             \
  f(exp, nonlinear, fractions, same, at::exp(x))                           \
  f(expm1, nonlinear, reals, same, at::expm1(x))                           \
  f(log, nonlinear, fractions, same, at::log(x))                           \
  f(log1p, nonlinear, reals, same, at::log1p(x))                           \
  f(log2, nonlinear, reals, same, at::log2(x))                             \
  f(log10, nonlinear, reals, same, at::log10(x))                           \
  f(sqrt, nonlinear, fractions, same, at::sqrt(x))                         \
  f(rsqrt, nonlinear, fractions, same, at::rsqrt(x))                       \
  f(sin, nonlinear, fractions, same, at::sin(x))                           \
  f(cos, nonlinear, fractions, same, at::cos(x))                           \
  f(tan, nonlinear, fractions, same, at::tan(x))                           \
  f(asin, nonlinear, reals, same, at::asin(x))                             \
  f(acos, nonlinear, reals, same, at::acos(x))                             \
  f(atan, nonlinear, reals, same, at::atan(x))                             \
  f(sinh, nonlinear, fractions, same, at::sinh(x))                         \
  f(cosh, nonlinear, fractions, same, at::cosh(x))                         \
  f(tanh, nonlinear, fractions, same, at::tanh(x))                         \
  f(asinh, nonlinear, reals, same, at::asinh(x))                           \
  f(acosh, nonlinear, reals, same, at::acosh(x))                           \
  f(atanh, nonlinear, reals, same, at::atanh(x))                           \
  f(erf, nonlinear, reals, same, at::erf(x))                               \
  f(erfc, nonlinear, reals, same, at::erfc(x))                             \
  f(relu, nonlinear, ordered, same, at::relu(x))                           \
  f(relu6, nonlinear, reals, same, at::hardtanh(x, 0, 6))                  \
  f(gelu, nonlinear, reals, same, at::gelu(x))                             \
  f(gelu_tanh, nonlinear, reals, same, at::gelu(x, "tanh"))                \
  f(sigmoid, nonlinear, fractions, same, at::sigmoid(x))                   \
  f(log_sigmoid, nonlinear, reals, same, at::log_sigmoid(x))               \
  f(silu, nonlinear, reals, same, at::silu(x))                             \
  f(softplus, nonlinear, reals, same, at::softplus(x))                     \
  f(softsign, nonlinear, reals, same, x / (1 + at::abs(x)))                \
  f(elu, nonlinear, reals, same, at::elu(x))                               \
  f(selu, nonlinear, reals, same, at::selu(x))                             \
  f(celu, nonlinear, reals, same, at::celu(x))                             \
  f(mish, nonlinear, reals, same, at::mish(x))                             \
  f(hardtanh, nonlinear, reals, same, at::hardtanh(x))                     \
  f(hardsigmoid, nonlinear, reals, same, at::hardsigmoid(x))               \
  f(hardswish, nonlinear, reals, same, at::hardswish(x))                   \
  f(leaky_relu, nonlinear, reals, same, at::leaky_relu(x))                 \
  f(floor, nonlinear, ordered, same, at::floor(x))                         \
  f(ceil, nonlinear, ordered, same, at::ceil(x))                           \
  f(round, nonlinear, ordered, same, at::round(x))                         \
  f(trunc, nonlinear, ordered, same, at::trunc(x))                         \
  f(frac, nonlinear, reals, same, at::frac(x))                             \
  f(isnan, nonlinear, everything, booleans, at::isnan(x))                  \
  f(isinf, nonlinear, everything, booleans, at::isinf(x))                  \
  f(isfinite, nonlinear, everything, booleans, at::isfinite(x))            \
  f(logical_not, nonlinear, everything, booleans, at::logical_not(x))

#define TESSERA_FUNCTIONS_OF_TWO(f)                                        \
  f(add, additive, everything, same, at::add(x, y))                        \
  f(sub, additive, numbers, same, at::sub(x, y))                           \
  f(mul, multilinear, everything, same, at::mul(x, y))                     \
  f(div, nonlinear, fractions, same, at::div(x, y))                        \
  f(pow, nonlinear, numbers, same, at::pow(x, y))                          \
  f(maximum, nonlinear, ordered, same, at::maximum(x, y))                  \
  f(minimum, nonlinear, ordered, same, at::minimum(x, y))                  \
  f(atan2, nonlinear, reals, same, at::atan2(x, y))                        \
  f(hypot, nonlinear, reals, same, at::hypot(x, y))                        \
  f(fmod, nonlinear, ordered, same, at::fmod(x, y))                        \
  f(remainder, nonlinear, ordered, same, at::remainder(x, y))              \
  f(eq, nonlinear, everything, booleans, at::eq(x, y))                     \
  f(ne, nonlinear, everything, booleans, at::ne(x, y))                     \
  f(lt, nonlinear, ordered, booleans, at::lt(x, y))                        \
  f(le, nonlinear, ordered, booleans, at::le(x, y))                        \
  f(gt, nonlinear, ordered, booleans, at::gt(x, y))                        \
  f(ge, nonlinear, ordered, booleans, at::ge(x, y))                        \
  f(logical_and, nonlinear, everything, booleans, at::logical_and(x, y))   \
  f(logical_or, nonlinear, everything, booleans, at::logical_or(x, y))     \
  f(logical_xor, nonlinear, everything, booleans, at::logical_xor(x, y))

#define TESSERA_FUNCTIONS_OF_A_NUMBER(f)                                       \
  f(times, mul, additive, numbers, same, at::mul(x, n))                        \
  f(divided, div, additive, fractions, same, at::div(x, n))                    \
  f(plus, add, nonlinear, numbers, same, at::add(x, n))                        \
  f(minus, sub, nonlinear, numbers, same, at::sub(x, n))                       \
  f(taken_from, rsub, nonlinear, numbers, same, at::rsub(x, n))                \
  f(dividing, rdiv, nonlinear, fractions, same, at::mul(at::reciprocal(x), n)) \
  f(power, pow, nonlinear, numbers, same, at::pow(x, n))                       \
  f(at_least, clamp_min, nonlinear, ordered, same, at::clamp_min(x, n))        \
  f(at_most, clamp_max, nonlinear, ordered, same, at::clamp_max(x, n))         \
  f(equals, eq, nonlinear, numbers, booleans, at::eq(x, n))                    \
  f(differs, ne, nonlinear, numbers, booleans, at::ne(x, n))                   \
  f(less, lt, nonlinear, ordered, booleans, at::lt(x, n))                      \
  f(not_more, le, nonlinear, ordered, booleans, at::le(x, n))                  \
  f(more, gt, nonlinear, ordered, booleans, at::gt(x, n))                      \
  f(not_less, ge, nonlinear, ordered, booleans, at::ge(x, n))
