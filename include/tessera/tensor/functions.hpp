#pragma once

#include <tessera/operation/functions/elementwise.hpp>
#include <tessera/operation/functions/reductions.hpp>
#include <tessera/tensor/apply.hpp>

namespace tessera {

namespace functions {

// What each function computes of this worker's boxes.
#define TESSERA_FUNCTION(function, kind, elements, result, computed) at::Tensor compute(const function&, const at::Tensor& x);
TESSERA_FUNCTIONS_OF_ONE(TESSERA_FUNCTION)
#undef TESSERA_FUNCTION
#define TESSERA_FUNCTION(function, kind, elements, result, computed) \
  at::Tensor compute(const function&, const at::Tensor& x, const at::Tensor& y);
TESSERA_FUNCTIONS_OF_TWO(TESSERA_FUNCTION)
#undef TESSERA_FUNCTION

/// A number in LibTorch's words, for boxes of x's element.
at::Scalar scalar_for(const number& n, number_kind kind, const at::Tensor& x);

#define TESSERA_FUNCTION(function, called, kind, elements, result, computed) \
  at::Tensor compute_##function(const at::Tensor& x, const at::Scalar& n);   \
  template <number_kind Of>                                                  \
  at::Tensor compute(const function<Of>& f, const at::Tensor& x) {           \
    return compute_##function(x, scalar_for(f.n, Of, x));                    \
  }
TESSERA_FUNCTIONS_OF_A_NUMBER(TESSERA_FUNCTION)
#undef TESSERA_FUNCTION

at::Tensor sum_over(const at::Tensor& x, at::IntArrayRef dims);
template <int... Dims>
at::Tensor compute(const sum<Dims...>&, const at::Tensor& x) {
  return sum_over(x, {index_t{Dims}...});
}
at::Tensor compute(const matmul&, const at::Tensor& x, const at::Tensor& y);

}  // namespace functions

namespace detail {

/// What a function computes, as a function object.
template <class F>
struct computing {
  const F& f;
  template <class... Given>
    requires requires(const F& g, const Given&... x) { compute(g, x...); }
  auto operator()(const Given&... x) const {
    return compute(f, x...);
  }
};

/// A function on tensors whose layouts are values: a local one by its signature, another by itself.
template <class F, class... Operands>
tensor<dyn> run(const F& f, const Operands&... x) {
  if constexpr (requires { f.what(x.layout()...); })
    return local_operation(f.what(x.layout()...).kind, f.on(value_at_hand(x)...), {&x...}).run(computing<F>{f}, x.local()...);
  else return compute(f, x...);
}

}  // namespace detail

namespace functions {

/// The door of all functions: every call is this. It refuses while compiling what the function makes of operands that are typed; on
/// `tensor<dyn>` the same refusals are thrown.
template <class F, class... Operands>
  requires(kind_of<F> == kind::function && ((kind_of<Operands> != kind::flow) && ...))
auto call(const F& f, const Operands&... x) {
  if constexpr (((kind_of<Operands> == kind::dynamic_tensor) && ...)) {
    return tessera::detail::run(f, x...);
  } else {
    using Typed = tessera::detail::applied_to<F, Operands...>;
    Typed::verdict::template refuse<typename Typed::verdict>();
    if constexpr (Typed::verdict::ok) return typename Typed::type(tessera::detail::run(f, x.dynamic()...));
    else return typename Typed::type();
  }
}

/// Any function of single elements.
template <class Compute>
struct of_each : of_one<linearity::nonlinear, takes::everything, gives::same> {
  const Compute* computed = nullptr;

  friend at::Tensor compute(const of_each& f, const at::Tensor& x) { return (*f.computed)(x); }
};

}  // namespace functions

/// f(x) element by element, with any f: non-linear, so x must not be partial.
template <AnyTensor X, class F>
auto map_elements(const X& x, const F& f) {
  functions::of_each<F> each;
  each.computed = &f;
  return call(each, x);
}

}  // namespace tessera

#ifndef TESSERA_COMPILED
#include <tessera/tensor/functions.ipp>
#endif
