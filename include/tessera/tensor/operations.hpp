#pragma once

#include <tessera/tensor/functions.hpp>
#include <tessera/tensor/verbs.hpp>

#include <complex>

namespace tessera {

namespace detail {

// A number of an element in a type that C++ computes with: half types as float.
template <class E>
auto number_in(const at::Tensor& t) {
  E e;
  std::memcpy(&e, as_stored(t).cpu().data_ptr(), sizeof(E));
  if constexpr (is_complex_type<E>) return std::complex(e.re, e.im);
  else return widened(e);
}

constexpr refusal check_steers(const layout& x) {
  if (x.dims.count > 0) return refusal{code::not_a_scalar, x.dims.count};
  for (int a = 0; a < x.placements.count; ++a)
    if (x.mesh.axes[a].extent > 1 && x.placements[a].kind != placement::invariant &&
        x.placements[a].kind != placement::replicate)
      return refusal{code::not_steering, x.mesh.axes[a].name};
  return {};
}

template <class T>
struct steers {
  static constexpr refusal value = check_steers(value_of<T>.layout);
};

void check_held(const tensor<dyn>& x);

}  // namespace detail

/// Reads a scalar that steers the program, LibTorch's `item`; only tensors that all workers hold alike have one, so no
/// two decide differently.
template <class P, class S, class E>
auto item(const tensor<P, S, E>& x) {
  using verdict = engine::verdict_of<detail::steers<tensor<P, S, E>>>;
  verdict::template refuse<verdict>();
  detail::check_held(x.dynamic());
  return detail::number_in<E>(x.local());
}
template <class X>
  requires(engine::kind_of<X> == kind::libtorch_tensor)
double item(const X&) {
  using verdict = detail::untyped<X>;
  verdict::template refuse<verdict>();
  return 0;
}
/// The same as a number of this type.
template <class N = double>
N item(const tensor<dyn>& x) {
  engine::check(detail::check_steers(x.layout()), *x.team());
  detail::check_held(x);
  return x.local().item<N>();
}

/// ⟨x, y⟩: local products summed over the workers in double, an invariant axis counted once; every worker gets the
/// number. Of complex tensors it is the real part of Σ x ȳ.
double pairing(const tensor<dyn>& x, const tensor<dyn>& y, call_site at = call_site::here());
template <TensorType X, TensorType Y>
double pairing(const X& x, const Y& y, call_site at = call_site::here()) {
  const cotangent_type<X>& paired = y;
  return pairing(x.dynamic(), paired.dynamic(), at);
}

}  // namespace tessera

#ifndef TESSERA_COMPILED
#include <tessera/tensor/operations_impl.hpp>
#endif
