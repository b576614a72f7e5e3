#pragma once

#include <tessera/tensor/apply.hpp>
#include <tessera/tensor/number.hpp>
#include <tessera/tensor/verbs.hpp>

namespace tessera {

namespace detail {

template <class T>
inline constexpr int dims_of = 0;
template <TensorType T>
inline constexpr int dims_of<T> = described<T>::value.layout.dims.count;

// f(x), element by element, with any f.
template <class X>
using each_element = unary_signature<dims_of<X>, linearity::nonlinear>;

// f(x, y), element by element.
template <class X, class Y, linearity Kind>
using pair_signature = binary_signature<dims_of<X>, dims_of<Y>, Kind>;

}  // namespace detail

/// x + y: operands alike along every axis, so terms meet terms and copies meet copies.
template <class X, class Y>
  requires(TensorType<X> || TensorType<Y>)
auto operator+(const X& x, const Y& y) {
  return detail::typed_apply<detail::pair_signature<X, Y, linearity::additive>>(
      +[](const at::Tensor& a, const at::Tensor& b) { return a + b; }, x, y);
}

/// x − y, under the rules of a sum.
template <class X, class Y>
  requires(TensorType<X> || TensorType<Y>)
auto operator-(const X& x, const Y& y) {
  return detail::typed_apply<detail::pair_signature<X, Y, linearity::additive>>(
      +[](const at::Tensor& a, const at::Tensor& b) { return a - b; }, x, y);
}

/// x · y, element by element: at most one of them partial.
template <class X, class Y>
  requires(TensorType<X> || TensorType<Y>)
auto operator*(const X& x, const Y& y) {
  return detail::typed_apply<detail::pair_signature<X, Y, linearity::multilinear>>(
      +[](const at::Tensor& a, const at::Tensor& b) { return a * b; }, x, y);
}

/// A tensor of any kind; an operation refuses those that are not distributed by a type.
template <class X>
concept AnyTensor = TensorType<X> || kind_of<X> == kind::dynamic_tensor || kind_of<X> == kind::libtorch_tensor;

/// f(x) element by element, with any f: non-linear, so x must not be partial.
template <AnyTensor X, class F>
auto map_elements(const X& x, F&& f) {
  return detail::typed_apply<detail::each_element<X>>(f, x);
}
template <AnyTensor X>
auto relu(const X& x) {
  return detail::typed_apply<detail::each_element<X>>(+[](const at::Tensor& a) { return at::relu(a); }, x);
}
template <AnyTensor X>
auto exp(const X& x) {
  return detail::typed_apply<detail::each_element<X>>(+[](const at::Tensor& a) { return at::exp(a); }, x);
}
template <AnyTensor X>
auto log(const X& x) {
  return detail::typed_apply<detail::each_element<X>>(+[](const at::Tensor& a) { return at::log(a); }, x);
}
template <AnyTensor X>
auto tanh(const X& x) {
  return detail::typed_apply<detail::each_element<X>>(+[](const at::Tensor& a) { return at::tanh(a); }, x);
}

namespace detail {

// Terms of half types are added in float.
template <int... Dims>
at::Tensor sum_over(const at::Tensor& x) {
  return in_float([](const at::Tensor& a) { return at::sum(a, at::IntArrayRef({index_t{Dims}...}), false, a.scalar_type()); }, x);
}

}  // namespace detail

/// Σ over the named dimensions (over all when none is named); a sum over a cut dimension is partial. An empty box gives 0.
template <int... Dims, AnyTensor X>
auto sum(const X& x) {
  return detail::typed_apply<detail::sum_signature<detail::dims_of<X>, Dims...>>(&detail::sum_over<Dims...>, x);
}

/// x[…, i, k] y[…, k, j]; a contraction over a dimension that both have cut alike is partial.
template <class X, class Y>
  requires(TensorType<X> || TensorType<Y>)
auto matmul(const X& x, const Y& y) {
  return detail::typed_apply<detail::matmul_signature<detail::dims_of<X>>>(
      +[](const at::Tensor& a, const at::Tensor& b) { return detail::in_float(at::matmul, a, b); }, x, y);
}

namespace detail {

// A number of an element in a type that C++ computes with: half types as float.
template <class E>
auto number_in(const at::Tensor& t) {
  E e;
  std::memcpy(&e, as_stored(t).data_ptr(), sizeof(E));
  if constexpr (is_complex_type<E>) return std::complex(e.re, e.im);
  else return widened(e);
}

// Real numbers in double; a complex one is two.
inline at::Tensor in_double(const at::Tensor& t) {
  const at::Tensor x = as_stored(t.detach());
  return (x.is_complex() ? at::view_as_real(x) : x).to(at::kDouble);
}

template <class T>
struct steers {
  static constexpr refusal value = [] {
    const layout& x = value_of<T>.layout;
    if (x.dims.count > 0) return refusal{code::not_a_scalar, x.dims.count};
    for (int a = 0; a < x.roles.count; ++a)
      if (x.mesh.axes[a].extent > 1 && x.roles[a].kind != role::invariant && x.roles[a].kind != role::replicate)
        return refusal{code::not_steering, x.mesh.axes[a].name};
    return refusal{};
  }();
};

}  // namespace detail

/// Reads a scalar that steers the program; only tensors that all workers hold alike have one, so no two decide differently.
template <class P, class S, class E>
auto value(const tensor<P, S, E>& x) {
  using verdict = verdict_of<detail::steers<tensor<P, S, E>>>;
  verdict::template refuse<verdict>();
  if (!x.layout().mesh.contains(x.team()->rank())) throw error(refusal{code::holds_nothing, x.team()->rank()}, x.team()->label());
  return detail::number_in<E>(x.local());
}

/// ⟨x, y⟩: local products summed over the workers in double, an invariant axis counted once; every worker gets the number. Of
/// complex tensors it is the real part of Σ x ȳ.
inline double pairing(const tensor<dyn>& x, const tensor<dyn>& y, call_site at = call_site::here()) {
  check(check_same({y.layout(), y.type()}, {cotangent(x.layout()), y.type()}), x.team()->label());
  const at::NoGradGuard no_record;
  const layout& l = x.layout();
  at::Tensor own = at::zeros({}, at::kDouble);
  if (detail::is_first_copy(x, role::invariant)) own = (detail::in_double(x.local()) * detail::in_double(y.local())).sum();
  layout terms;
  terms.mesh = l.mesh;
  for (int a = 0; a < l.roles.count; ++a) terms.roles.push({role::partial});
  layout all = terms;
  for (auto& r : all.roles) r = {};
  return change_layout(x.team(), terms, all, own, at).item<double>();
}
template <TensorType X, TensorType Y>
double pairing(const X& x, const Y& y, call_site at = call_site::here()) {
  const cotangent_type<X>& paired = y;
  return pairing(x.dynamic(), paired.dynamic(), at);
}

}  // namespace tessera
