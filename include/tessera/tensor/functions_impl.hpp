#pragma once

#include <tessera/tensor/autograd/recomposed.hpp>
#include <tessera/tensor/autograd/scaled_gradient.hpp>
#include <tessera/tensor/box/neutral.hpp>
#include <tessera/tensor/functions.hpp>
#include <tessera/tensor/stream/stream.hpp>
#include <tessera/tensor/stream/streamed_products.hpp>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

namespace tessera::detail {

// LibTorch has its first derivative alone.
inline at::Tensor recomposed_hardsigmoid(const at::Tensor& x) {
  return recomposed(at::hardsigmoid(x), {x},
                    [](const std::vector<at::Tensor>& of) { return at::hardtanh(of[0] + 3, 0, 6) / 6; });
}

}  // namespace tessera::detail

namespace tessera::functions {

#define TESSERA_FUNCTION(function, kind, elements, result, saves, more, computed) \
  TESSERA_INLINE at::Tensor compute(const function&, const at::Tensor& x) { return computed; }
TESSERA_FUNCTIONS_OF_ONE(TESSERA_FUNCTION)
#undef TESSERA_FUNCTION
#define TESSERA_FUNCTION(function, kind, elements, result, saves, more, computed) \
  TESSERA_INLINE at::Tensor compute(const function&, const at::Tensor& x, const at::Tensor& y) { return computed; }
TESSERA_FUNCTIONS_OF_TWO(TESSERA_FUNCTION)
#undef TESSERA_FUNCTION

namespace engine {

TESSERA_INLINE at::Scalar scalar_for(const number& n, number_kind kind, const at::Tensor& x) {
  if (kind == number_kind::complex) return c10::complex<double>(n.re, n.im);
  if (x.is_floating_point() || x.is_complex()) return n.re;
  return n.whole;
}

#define TESSERA_FUNCTION(function, called, kind, elements, result, saves, more, computed) \
  TESSERA_INLINE at::Tensor compute_##function(const at::Tensor& x, const at::Scalar& n) { return computed; }
TESSERA_FUNCTIONS_OF_A_NUMBER(TESSERA_FUNCTION)
#undef TESSERA_FUNCTION

}  // namespace engine

#define TESSERA_FUNCTION(function, saves, more, first, otherwise, holds, computed) \
  TESSERA_INLINE at::Tensor compute(const function& f, const at::Tensor& x) {      \
    const double a = f.n.re;                                                       \
    return computed;                                                               \
  }
TESSERA_ACTIVATIONS_OF_A_NUMBER(TESSERA_FUNCTION)
#undef TESSERA_FUNCTION
#define TESSERA_FUNCTION(function, saves, more, first, otherwise, second, or_else, holds, computed) \
  TESSERA_INLINE at::Tensor compute(const function& f, const at::Tensor& x) {                       \
    const double a = f.n.re;                                                                        \
    const double b = f.n.im;                                                                        \
    return computed;                                                                                \
  }
TESSERA_ACTIVATIONS_OF_TWO_NUMBERS(TESSERA_FUNCTION)
#undef TESSERA_FUNCTION

TESSERA_INLINE at::Tensor compute(const where&, const at::Tensor& holds, const at::Tensor& x, const at::Tensor& y) {
  return at::where(holds, x, y);
}

namespace engine {

/// The element in which something is counted, as LibTorch does: int64 of integers and booleans.
inline at::ScalarType counted_in(const at::Tensor& x) {
  return at::isIntegralType(x.scalar_type(), true) ? at::kLong : x.scalar_type();
}

// Terms of half types are added in float.
TESSERA_INLINE at::Tensor compute_sum(const local_boxes&, const at::Tensor& x, at::IntArrayRef dims) {
  return tessera::detail::in_float(
      [dims](const at::Tensor& a) { return dims.empty() ? a.to(counted_in(a)) : at::sum(a, dims); }, x);
}
TESSERA_INLINE at::Tensor compute_mean(const local_boxes& boxes, const at::Tensor& x, at::IntArrayRef dims) {
  double count = 1;
  for (const index_t d : dims) count *= static_cast<double>(boxes.operands[0].extents[static_cast<int>(d)]);
  return tessera::detail::in_float([&](const at::Tensor& a) { return (dims.empty() ? a : at::sum(a, dims)) / count; },
                                   x);
}

/// The value of a combine of no element.
inline at::Tensor neutral(at::IntArrayRef sizes, const at::Tensor& x, combine with) {
  const at::Tensor none = at::empty(sizes, x.options());
  tessera::engine::fill_neutral(none, tessera::detail::element_of_scalar(x.scalar_type()), with);
  return none;
}
inline at::Tensor most(const at::Tensor& x, at::IntArrayRef dims, at::IntArrayRef sizes, combine with) {
  if (x.numel() == 0) return neutral(sizes, x, with);
  return with == combine::max ? at::amax(x, dims) : at::amin(x, dims);
}

TESSERA_INLINE at::Tensor compute_amax(const local_boxes& boxes, const at::Tensor& x, at::IntArrayRef dims) {
  return most(x, dims, tessera::detail::sizes_of(boxes.result.held), combine::max);
}
TESSERA_INLINE at::Tensor compute_amin(const local_boxes& boxes, const at::Tensor& x, at::IntArrayRef dims) {
  return most(x, dims, tessera::detail::sizes_of(boxes.result.held), combine::min);
}
TESSERA_INLINE at::Tensor compute_prod_over(const local_boxes&, const at::Tensor& x, at::IntArrayRef dims) {
  std::vector<index_t> inward(dims.begin(), dims.end());
  std::sort(inward.begin(), inward.end(), std::greater<>());
  return tessera::detail::in_float(
      [&](at::Tensor a) {
        a = a.to(counted_in(a));
        if (a.dim() == static_cast<index_t>(dims.size())) return at::prod(a);
        for (const index_t d : inward) a = at::prod(a, d);
        return a;
      },
      x);
}
/// The answer to a question about all, in LibTorch's element.
inline at::Tensor answered(const at::Tensor& y, const at::Tensor& of) {
  return of.scalar_type() == at::kByte ? y.to(at::kByte) : y;
}
TESSERA_INLINE at::Tensor compute_any_over(const local_boxes&, const at::Tensor& x, at::IntArrayRef dims) {
  const at::Tensor b = x.to(at::kBool);
  return answered(dims.empty() ? b : at::any(b, dims, false), x);
}
TESSERA_INLINE at::Tensor compute_all_over(const local_boxes&, const at::Tensor& x, at::IntArrayRef dims) {
  const at::Tensor b = x.to(at::kBool);
  return answered(dims.empty() ? b : at::all(b, dims, false), x);
}

}  // namespace engine

TESSERA_INLINE at::Tensor compute(const matmul&, const at::Tensor& x, const at::Tensor& y) {
  return tessera::detail::in_float([](const at::Tensor& a, const at::Tensor& b) { return at::matmul(a, b); }, x, y);
}

namespace engine {

TESSERA_INLINE at::Tensor sum_of_products(const signature& op, at::TensorList x) {
  std::string text;
  for (const letters& l : op.operands) text.append(text.empty() ? "" : ",").append(l.begin(), l.end());
  text.append("->").append(op.result.begin(), op.result.end());
  const at::ScalarType e = x[0].scalar_type();
  // LibTorch mixes narrow integers with their counts where it sums one operand alone.
  const at::ScalarType sums = at::isReducedFloatingType(e) ? at::kFloat : counted_in(x[0]);
  if (sums == e) return at::einsum(text, x);
  std::vector<at::Tensor> wide;
  for (const at::Tensor& one : x) wide.push_back(one.to(sums));
  return at::einsum(text, wide).to(e);
}
TESSERA_INLINE at::Tensor streamed_sum_of_products(const signature& op, const bound_exchanges& by,
                                                   const std::vector<at::Tensor>& x) {
  std::vector<letters> named(op.operands.begin(), op.operands.end());
  product_term all{0, {}};
  for (int o = 0; o < op.operands.count; ++o) all.of.push_back({o});
  const auto f = std::make_shared<streamed_products>(std::move(named), std::vector<letters>{op.result},
                                                     std::vector<product_term>{all});
  return evaluate(by.team, stream_for(op, by, x, f), x)[0];
}
TESSERA_INLINE at::Tensor compute_pad(const bound_exchanges& by, const at::Tensor& x, int dim, index_t before,
                                      const at::Scalar& n) {
  const at::Tensor used = by.exchanged(x, 0);
  const local_box& result = by.boxes.result;
  if (result.empty()) return tessera::detail::empty_result(result.held, {used}, x.scalar_type());
  const index_t lo = result.first(dim) - before;
  const interval reads{lo, lo + result.size(dim)},
      has = tessera::engine::held_by(by.exchanges[0].to->layout(), by.team->rank())[dim][0],
      taken = overlap(reads, has);
  padded_box around{{}, {}, n};
  around.before.resize(result.held.count);
  around.behind.resize(result.held.count);
  around.before[dim] = taken.empty() ? reads.size() : taken.lo - reads.lo;
  around.behind[dim] = taken.empty() ? 0 : reads.hi - taken.hi;
  return around.around(used.narrow(dim, taken.empty() ? 0 : taken.lo - has.lo, taken.size()));
}
TESSERA_INLINE at::Tensor compute_rotary(const local_box& where, const at::Tensor& x, int dim, index_t base) {
  const index_t half = x.size(-1) / 2;
  const at::TensorOptions exact = x.options().dtype(at::kDouble).requires_grad(false);
  std::vector<at::Tensor> places{at::empty({0}, exact)};
  for (const interval& i : where.held[dim]) places.push_back(at::arange(i.lo, i.hi, exact));
  const at::Tensor turns = at::pow(static_cast<double>(base),
                                   at::arange(half, exact) / -static_cast<double>(tessera::detail::larger(1, half)));
  std::vector<index_t> along(static_cast<std::size_t>(x.dim()), 1);
  along[static_cast<std::size_t>(dim)] = x.size(dim);
  along.back() = half;
  const at::Tensor angles = at::outer(at::cat(places), turns).reshape(along);
  const at::Tensor wide = x.to(tessera::detail::added_in(x.scalar_type()));
  const at::Tensor sines = at::sin(angles).to(wide.scalar_type()), cosines = at::cos(angles).to(wide.scalar_type());
  const at::Tensor a = wide.narrow(-1, 0, half), b = wide.narrow(-1, half, half);
  const at::Tensor c = (a * cosines).sub_(b * sines);
  const at::Tensor d = (b * cosines).add_(a * sines);
  return at::cat({c, d}, -1).to(x.scalar_type());
}
TESSERA_INLINE at::Tensor reshaped(const local_boxes& boxes, const at::Tensor& x) {
  // one who does not hold the only element has a box of none, but a number has no such box
  if (x.numel() == 0 && !boxes.result.empty()) return tessera::detail::empty_result(boxes.result.held, {x});
  return x.reshape(tessera::detail::sizes_of(boxes.result.held));
}

/// A dimension of one element for each that was reduced.
inline at::Tensor kept(at::Tensor y, at::IntArrayRef dims) {
  for (const index_t d : dims) y = y.unsqueeze(d);
  return y;
}
inline double count_of(const local_boxes& boxes, at::IntArrayRef dims) {
  double n = 1;
  for (const index_t d : dims) n *= static_cast<double>(boxes.operands[0].extents[static_cast<int>(d)]);
  return n;
}
/// A sum over all workers; an extreme of all workers.
inline at::Tensor summed(const bound_exchanges& by, std::size_t i, const at::Tensor& x, at::IntArrayRef dims) {
  return by.exchanged(dims.empty() ? x : x.sum(dims), i);
}
inline at::Tensor extreme(const bound_exchanges& by, std::size_t i, const at::Tensor& x, at::IntArrayRef dims,
                          combine with) {
  const box_vector& sizes = by.exchanges[i].from->extents();
  return by.exchanged(most(x, dims, at::IntArrayRef(sizes.begin(), sizes.end()), with), i);
}

TESSERA_INLINE at::Tensor compute_argument(const bound_exchanges& by, const at::Tensor& x, int dim, bool largest) {
  const at::Tensor local = x.detach();
  const index_t dims[]{dim};
  const at::Tensor best = kept(extreme(by, 0, local, dims, largest ? combine::max : combine::min), dims);
  std::vector<at::Tensor> positions{at::empty({0}, local.options().dtype(at::kLong))};
  for (const interval& i : by.boxes.operands[0].held[dim])
    positions.push_back(at::arange(i.lo, i.hi, positions[0].options()));
  std::vector<index_t> along(static_cast<std::size_t>(local.dim()), 1);
  along[static_cast<std::size_t>(dim)] = -1;
  at::Tensor hit = local == best;
  if (local.is_floating_point()) hit = hit.logical_or(at::isnan(best).logical_and(at::isnan(local)));
  const at::Tensor nowhere = at::full({}, std::numeric_limits<index_t>::max(), positions[0].options());
  return extreme(by, 1, at::where(hit, at::cat(positions).view(along), nowhere), dims, combine::min);
}

TESSERA_INLINE at::Tensor compute_var(const bound_exchanges& by, const at::Tensor& x, at::IntArrayRef dims,
                                      index_t correction) {
  const double n = count_of(by.boxes, dims);
  const at::Tensor wide = x.to(at::kDouble);
  const at::Tensor from_mean = wide - kept(summed(by, 0, wide, dims) / n, dims);
  return (summed(by, 1, at::square(from_mean), dims) / std::max(0.0, n - static_cast<double>(correction)))
      .to(x.scalar_type());
}

TESSERA_INLINE at::Tensor compute_norm(const bound_exchanges& by, const at::Tensor& x, at::IntArrayRef dims, double p,
                                       combine with) {
  const at::Tensor size = at::abs(x.to(at::kDouble));
  // all that are as large share the gradient: y = most + (n − n) / n, where n counts them and has the gradient of their
  // sum
  if (with == combine::max) {
    const at::Tensor most = extreme(by, 0, size.detach(), dims, with), all = kept(most, dims);
    const at::Tensor hit = (size == all).logical_or(at::isnan(all).logical_and(at::isnan(size))).to(at::kDouble);
    const at::Tensor count = summed(by, 1, hit * tessera::detail::with_gradient(at::ones_like(hit), size), dims),
                     n = count.detach();
    return (most + (count - n) / n.clamp_min(1)).to(x.scalar_type());
  }
  if (p == 1) return summed(by, 0, size, dims).to(x.scalar_type());
  const auto powers = [&] {
    if (p >= 1) return at::pow(size, p);
    // at zero a root has no gradient, and its own is 0 of what comes
    const at::Tensor is_there = (size != 0).to(size.scalar_type());
    return at::pow(size + (1 - is_there), p) * is_there;
  };
  const at::Tensor total = summed(by, 0, powers(), dims);
  const at::Tensor none = total == 0;  // where the root has no gradient
  return at::where(none, total, at::pow(at::where(none, at::ones_like(total), total), 1 / p)).to(x.scalar_type());
}

TESSERA_INLINE at::Tensor compute_softmax(const bound_exchanges& by, const at::Tensor& x, int dim, bool log) {
  const at::Tensor local = at::isReducedFloatingType(x.scalar_type()) ? x.to(at::kFloat) : x;
  if (by.exchanges[0].from == by.exchanges[0].to)
    return (log ? at::log_softmax(local, dim) : at::softmax(local, dim)).to(x.scalar_type());
  const index_t dims[]{dim};
  const at::Tensor below = local - kept(extreme(by, 0, local.detach(), dims, combine::max), dims);
  const at::Tensor powers = at::exp(below);
  const at::Tensor total = kept(summed(by, 1, powers, dims), dims);
  return (log ? below - at::log(total) : powers / total).to(x.scalar_type());
}

TESSERA_INLINE at::Tensor over_length(const at::Tensor& x, const at::Tensor& squares, int dim, double eps) {
  const at::Tensor least = squares < eps * eps;  // where a root has no gradient
  const at::Tensor length = at::sqrt(at::where(least, eps * eps, squares)).to(x.scalar_type());
  const index_t dims[]{dim};
  return x / kept(length, dims);
}

TESSERA_INLINE at::Tensor compute_normalize(const bound_exchanges& by, const at::Tensor& x, int dim, double eps) {
  const at::Tensor local = at::isReducedFloatingType(x.scalar_type()) ? x.to(at::kFloat) : x;
  const index_t dims[]{dim};
  const at::Tensor squares = by.exchanged(at::sum(local * local, dims, false, at::kDouble), 0);
  return over_length(local, squares, dim, eps).to(x.scalar_type());
}

}  // namespace engine

}  // namespace tessera::functions
