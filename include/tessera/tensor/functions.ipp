#pragma once

#include <tessera/tensor/functions.hpp>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

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

TESSERA_INLINE at::Tensor compute(const where&, const at::Tensor& holds, const at::Tensor& x, const at::Tensor& y) { return at::where(holds, x, y); }

// Terms of half types are added in float.
TESSERA_INLINE at::Tensor compute_sum(const local_boxes&, const at::Tensor& x, at::IntArrayRef dims) {
  return tessera::detail::in_float([dims](const at::Tensor& a) { return dims.empty() ? a : at::sum(a, dims, false, a.scalar_type()); }, x);
}
TESSERA_INLINE at::Tensor compute_mean(const local_boxes& boxes, const at::Tensor& x, at::IntArrayRef dims) {
  double count = 1;
  for (const index_t d : dims) count *= static_cast<double>(boxes.operands[0].extents[static_cast<int>(d)]);
  return tessera::detail::in_float([&](const at::Tensor& a) { return (dims.empty() ? a : at::sum(a, dims)) / count; }, x);
}

/// What no element at all combines to.
inline at::Tensor neutral(at::IntArrayRef sizes, const at::Tensor& x, combine with) {
  const at::Tensor none = at::empty(sizes, x.options());
  fill_neutral(tessera::detail::region_of(none, tessera::detail::element_of_scalar(x.scalar_type())), with);
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
  return tessera::detail::in_float([&](at::Tensor a) {
    for (const index_t d : inward) a = at::prod(a, d, false, a.scalar_type());
    return a;
  }, x);
}
TESSERA_INLINE at::Tensor compute_any_over(const local_boxes&, const at::Tensor& x, at::IntArrayRef dims) {
  const at::Tensor b = x.to(at::kBool);
  return dims.empty() ? b : at::any(b, dims, false);
}
TESSERA_INLINE at::Tensor compute_all_over(const local_boxes&, const at::Tensor& x, at::IntArrayRef dims) {
  const at::Tensor b = x.to(at::kBool);
  return dims.empty() ? b : at::all(b, dims, false);
}

TESSERA_INLINE at::Tensor compute(const matmul&, const at::Tensor& x, const at::Tensor& y) {
  return tessera::detail::in_float([](const at::Tensor& a, const at::Tensor& b) { return at::matmul(a, b); }, x, y);
}
TESSERA_INLINE at::Tensor sum_of_products(const signature& what, at::TensorList x) {
  std::string text;
  for (const letters& l : what.operands) text.append(text.empty() ? "" : ",").append(l.begin(), l.end());
  text.append("->").append(what.result.begin(), what.result.end());
  const at::ScalarType e = x[0].scalar_type();
  if (!at::isReducedFloatingType(e)) return at::einsum(text, x);
  std::vector<at::Tensor> wide;
  for (const at::Tensor& one : x) wide.push_back(one.to(at::kFloat));
  return at::einsum(text, wide).to(e);
}
TESSERA_INLINE at::Tensor reshaped(const local_boxes& boxes, const at::Tensor& x) { return x.reshape(tessera::detail::sizes_of(boxes.result.held)); }

/// Along the axes that cut what is reduced, workers combine what they have of it.
class reduced_exchange {
 public:
  reduced_exchange(const tensor<dyn>& x, const layout& whole, at::IntArrayRef dims) : x_(x), whole_(whole), dims_(dims.begin(), dims.end()) {
    std::sort(dims_.begin(), dims_.end());
  }
  at::Tensor combined(const at::Tensor& local, combine with) const {
    layout terms = whole_;
    for (int a = 0; a < terms.roles.count; ++a) {
      const axis_role& r = x_.layout().roles[a];
      if (r.kind == role::cut && std::count(dims_.begin(), dims_.end(), r.dimension) > 0) terms.roles[a] = partial_by(with);
    }
    return change_layout(x_.team(), terms, whole_, local);
  }
  at::Tensor summed(const at::Tensor& local) const { return combined(dims_.empty() ? local : local.sum(dims_), combine::sum); }
  at::Tensor extreme(const at::Tensor& local, combine with) const {
    return combined(most(local, dims_, tessera::detail::sizes_of(held_by(whole_, x_.team()->rank())), with), with);
  }
  /// The same with a dimension of one element for each that was reduced.
  at::Tensor kept(at::Tensor y) const {
    for (const index_t d : dims_) y = y.unsqueeze(d);
    return y;
  }
  double count() const {
    double n = 1;
    for (const index_t d : dims_) n *= static_cast<double>(x_.layout().dims[static_cast<int>(d)].extent);
    return n;
  }

 private:
  const tensor<dyn>& x_;
  const layout& whole_;
  std::vector<index_t> dims_;
};

/// The result of a function with exchanges, rounded once.
inline tensor<dyn> finished(const tensor<dyn>& x, const tensor_value& gives, const at::Tensor& y) {
  at::Tensor local = y.to(tessera::detail::scalar_type(gives.element));
  if (has_cotangent(gives.element)) local = tessera::detail::tied(local, {x.local()});
  return tessera::detail::tensor_of(x.team(), gives.layout, gives.element, local);
}

TESSERA_INLINE tensor<dyn> compute_argument(const tensor<dyn>& x, const tensor_value& gives, int dim, bool largest) {
  const during now(*x.team(), {.what = largest ? "argmax" : "argmin"});
  const reduced_exchange all(x, gives.layout, {index_t{dim}});
  const at::Tensor local = x.local().detach();
  const at::Tensor best = all.kept(all.extreme(local, largest ? combine::max : combine::min));
  std::vector<at::Tensor> places{at::empty({0}, at::kLong)};
  const holding held = held_by(x.layout(), x.team()->rank());
  for (const interval& i : held[dim]) places.push_back(at::arange(i.lo, i.hi, at::kLong));
  std::vector<index_t> along(static_cast<std::size_t>(local.dim()), 1);
  along[static_cast<std::size_t>(dim)] = -1;
  at::Tensor hit = local == best;
  if (local.is_floating_point()) hit = hit.logical_or(at::isnan(best).logical_and(at::isnan(local)));
  const at::Tensor nowhere = at::full({}, std::numeric_limits<index_t>::max(), at::kLong);
  return finished(x, gives, all.extreme(at::where(hit, at::cat(places).view(along), nowhere), combine::min));
}

TESSERA_INLINE tensor<dyn> compute_var(const tensor<dyn>& x, const tensor_value& gives, at::IntArrayRef dims, index_t correction) {
  const during now(*x.team(), {.what = "var"});
  const reduced_exchange all(x, gives.layout, dims);
  const at::Tensor wide = x.local().to(at::kDouble);
  const at::Tensor from_mean = wide - all.kept(all.summed(wide) / all.count());
  return finished(x, gives, all.summed(at::square(from_mean)) / std::max(0.0, all.count() - static_cast<double>(correction)));
}

TESSERA_INLINE tensor<dyn> compute_norm(const tensor<dyn>& x, const tensor_value& gives, at::IntArrayRef dims, double p) {
  const during now(*x.team(), {.what = "norm"});
  const reduced_exchange all(x, gives.layout, dims);
  const at::Tensor size = at::abs(x.local().to(at::kDouble));
  if (std::isinf(p)) return finished(x, gives, all.extreme(size, combine::max));
  if (p == 1) return finished(x, gives, all.summed(size));
  const at::Tensor total = all.summed(at::pow(size, p));
  const at::Tensor none = total == 0;  // where the root has no gradient
  return finished(x, gives, at::where(none, total, at::pow(at::where(none, at::ones_like(total), total), 1 / p)));
}

TESSERA_INLINE tensor<dyn> compute_softmax(const tensor<dyn>& x, const layout& whole, int dim, bool log) {
  const during now(*x.team(), {.what = log ? "log_softmax" : "softmax"});
  const tensor_value gives = tessera::detail::value_at_hand(x);
  const at::Tensor local = is_half(x.type()) ? x.local().to(at::kFloat) : x.local();
  if (x.layout().part_count(dim) == 1) return finished(x, gives, log ? at::log_softmax(local, dim) : at::softmax(local, dim));
  const reduced_exchange all(x, whole, {index_t{dim}});
  const at::Tensor below = local - all.kept(all.extreme(local.detach(), combine::max));
  const at::Tensor total = all.kept(all.summed(at::exp(below)));
  return finished(x, gives, log ? below - at::log(total) : at::exp(below) / total);
}

}  // namespace tessera::functions
