#pragma once

#include <tessera/operation/local_boxes.hpp>
#include <tessera/operation/typed.hpp>
#include <tessera/tensor/empty_result.hpp>
#include <tessera/tensor/tied.hpp>
#include <tessera/tensor/verbs.hpp>

#include <complex>

namespace tessera {

namespace detail {

inline operand operand_of(const tensor<dyn>& x) { return {x.layout(), !has_cotangent(x.type())}; }

/// Calls `compute` on this worker's boxes; one that takes a local_boxes first is told where they lie. A worker whose part of the
/// result is empty computes nothing.
template <class Compute, class... Boxes>
at::Tensor compute_local(const local_boxes& where, const Compute& compute, const Boxes&... boxes) {
  if (where.result.empty()) return empty_result(where.result.held, {boxes...});
  if constexpr (std::is_invocable_v<const Compute&, const local_boxes&, const Boxes&...>) return compute(where, boxes...);
  else return compute(boxes...);
}

}  // namespace detail

/// Applies a local operation: its signature decides what is legal and how the result lies, `compute` gets the local boxes.
///
///   apply(s, [](const at::Tensor& x, …) { … }, x, …)
///   apply(s, [](const local_boxes& where, const at::Tensor& x, …) { … }, x, …)
///
/// `compute` gives this worker's box of the result, in the first operand's element. Its gradient is LibTorch's, so it is made of
/// differentiable functions of all operands, and does the same on every worker.
template <class Compute, class... Operands>
tensor<dyn> apply(const signature& what, Compute&& compute, const tensor<dyn>& first, const Operands&... rest) {
  static_assert(1 + sizeof...(rest) <= decltype(signature::operands)::capacity, "an operation has at most 4 operands");
  static_vector<operand, 4> operands;
  operands.push(detail::operand_of(first));
  (operands.push(detail::operand_of(rest)), ...);
  if (((rest.team()->shared_carrier() != first.team()->shared_carrier()) || ...)) throw error(refusal{code::other_team});
  const inferred y = infer(what, operands);
  check(y.why, first.team()->label());
  local_boxes where;
  const int rank = first.team()->rank();
  for (const operand& x : operands) where.operands.push({x.layout, rank});
  where.result = {y.layout, rank};
  at::Tensor local = detail::compute_local(where, compute, first.local(), rest.local()...);
  if (what.kind != linearity::additive) local = detail::tied(local, {first.local(), rest.local()...});
  tensor<dyn> result(first.team(), y.layout, local);
  check(detail::check_element(first.type(), local.scalar_type()), first.team()->label());
  return result;
}

namespace detail {

// Refuses by itself, so that operators take few lines; theirs pass plain functions, since the name of a lambda would repeat
// the operands' types.
template <class Signature, class Compute, class First, class... Rest>
auto typed_apply(Compute&& compute, const First& first, const Rest&... rest) {
  using Typed = typed_result<Signature, First, Rest...>;
  Typed::verdict::template refuse<typename Typed::verdict>();
  if constexpr (Typed::verdict::ok) return typename Typed::type(apply(Signature::value, compute, first.dynamic(), rest.dynamic()...));
  else return typename Typed::type();
}

}  // namespace detail

/// The same on typed tensors: `apply<scaled>(compute, x, w)` with a constant `scaled`. The result's type follows from its
/// signature; an illegal operation does not compile.
template <const signature& S, class Compute, class... Operands>
  requires(TensorType<Operands> && ...)
auto apply(Compute&& compute, const Operands&... x) {
  return detail::typed_apply<detail::constant_signature<S>>(compute, x...);
}

namespace detail {

template <class T>
struct steers {
  static constexpr refusal value = [] {
    const layout& x = value_of<T>.layout;
    if (x.dims.count > 0) return refusal{code::not_a_scalar, x.dims.count};
    for (int a = 0; a < x.roles.count; ++a)
      if (x.mesh.axes[a].extent > 1 && x.roles[a].kind != role::invariant && x.roles[a].kind != role::replicate)
        return refusal{code::not_steering, a};
    return refusal{};
  }();
};

}  // namespace detail

/// x + y: operands alike along every axis, so terms meet terms and copies meet copies.
template <class P, class S, class Q, class R, class E>
auto operator+(const tensor<P, S, E>& x, const tensor<Q, R, E>& y) {
  return detail::typed_apply<detail::binary_signature<S::rank, R::rank, linearity::additive>>(
      +[](const at::Tensor& a, const at::Tensor& b) { return a + b; }, x, y);
}

/// x − y, under the rules of a sum.
template <class P, class S, class Q, class R, class E>
auto operator-(const tensor<P, S, E>& x, const tensor<Q, R, E>& y) {
  return detail::typed_apply<detail::binary_signature<S::rank, R::rank, linearity::additive>>(
      +[](const at::Tensor& a, const at::Tensor& b) { return a - b; }, x, y);
}

/// x · y, element by element: at most one of them partial.
template <class P, class S, class Q, class R, class E>
auto operator*(const tensor<P, S, E>& x, const tensor<Q, R, E>& y) {
  return detail::typed_apply<detail::binary_signature<S::rank, R::rank, linearity::multilinear>>(
      +[](const at::Tensor& a, const at::Tensor& b) { return a * b; }, x, y);
}

/// x times a number that all workers know.
template <class P, class S, class E>
tensor<P, S, E> operator*(const tensor<P, S, E>& x, double factor) {
  return tensor<P, S, E>(tensor<dyn>(x.team(), x.layout(), x.local() * factor));
}
template <class P, class S, class E>
tensor<P, S, E> operator*(double factor, const tensor<P, S, E>& x) {
  return x * factor;
}

/// f(x) element by element, with any f: non-linear, so x must not be partial.
template <class P, class S, class E, class F>
auto map_elements(const tensor<P, S, E>& x, F&& f) {
  return detail::typed_apply<detail::unary_signature<S::rank, linearity::nonlinear>>(f, x);
}
template <class P, class S, class E>
auto relu(const tensor<P, S, E>& x) {
  return map_elements(x, [](const at::Tensor& a) { return at::relu(a); });
}
template <class P, class S, class E>
auto exp(const tensor<P, S, E>& x) {
  return map_elements(x, [](const at::Tensor& a) { return at::exp(a); });
}
template <class P, class S, class E>
auto log(const tensor<P, S, E>& x) {
  return map_elements(x, [](const at::Tensor& a) { return at::log(a); });
}
template <class P, class S, class E>
auto tanh(const tensor<P, S, E>& x) {
  return map_elements(x, [](const at::Tensor& a) { return at::tanh(a); });
}

/// Σ over the named dimensions (over all when none is named); a sum over a cut dimension is partial. An empty box gives 0.
template <int... Dims, class P, class S, class E>
auto sum(const tensor<P, S, E>& x) {
  return detail::typed_apply<detail::sum_signature<S::rank, Dims...>>(
      [](const at::Tensor& a) {
        if constexpr (sizeof...(Dims) == 0) return at::sum(a, a.scalar_type());
        else return at::sum(a, at::IntArrayRef({Dims...}), false, a.scalar_type());
      },
      x);
}

/// x[…, i, k] y[…, k, j]; a contraction over a dimension that both have cut alike is partial.
template <class P, class S, class Q, class R, class E>
auto matmul(const tensor<P, S, E>& x, const tensor<Q, R, E>& y) {
  return detail::typed_apply<detail::matmul_signature<S::rank>>(
      +[](const at::Tensor& a, const at::Tensor& b) { return at::matmul(a, b); }, x, y);
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

}  // namespace detail

/// Reads a scalar that steers the program; only tensors that all workers hold alike have one, so no two decide differently.
template <class P, class S, class E>
auto value(const tensor<P, S, E>& x) {
  using verdict = verdict_of<detail::steers<tensor<P, S, E>>>;
  verdict::template refuse<verdict>();
  if (!x.layout().mesh.contains(x.team()->rank())) throw error(refusal{code::not_steering, -1}, x.team()->label());
  return detail::number_in<E>(x.local());
}

/// ⟨x, y⟩: local products summed over the workers in double, an invariant axis counted once; every worker gets the number. Of
/// complex tensors it is the real part of Σ x ȳ.
inline double pairing(const tensor<dyn>& x, const tensor<dyn>& y) {
  if (!same(cotangent(x.layout()), y.layout())) throw error(refusal{code::wrong_partition, 0}, x.team()->label());
  const at::NoGradGuard no_record;
  const layout& l = x.layout();
  at::Tensor own = at::zeros({}, at::kDouble);
  if (detail::is_first_copy(x, role::invariant)) own = (detail::in_double(x.local()) * detail::in_double(y.local())).sum();
  layout terms;
  terms.mesh = l.mesh;
  for (int a = 0; a < l.roles.count; ++a) terms.roles.push({role::partial});
  layout all = terms;
  for (auto& r : all.roles) r = {};
  return change_layout(x.team(), terms, all, own).item<double>();
}
template <class P, class S, class E>
double pairing(const tensor<P, S, E>& x, const cotangent_type<tensor<P, S, E>>& y) {
  return pairing(x.dynamic(), y.dynamic());
}

}  // namespace tessera
