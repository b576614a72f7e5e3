#pragma once

#include <tessera/functions.hpp>
#include <tessera/tensor/apply.hpp>

namespace tessera {

namespace functions {

#define TESSERA_FUNCTION(function, kind, elements, result, saves, more, computed) \
  at::Tensor compute(const function&, const at::Tensor& x);
/// The computation of each function on this worker's boxes, here of one tensor.
TESSERA_FUNCTIONS_OF_ONE(TESSERA_FUNCTION)
#undef TESSERA_FUNCTION
#define TESSERA_FUNCTION(function, kind, elements, result, saves, more, computed) \
  at::Tensor compute(const function&, const at::Tensor& x, const at::Tensor& y);
/// The same of two.
TESSERA_FUNCTIONS_OF_TWO(TESSERA_FUNCTION)
#undef TESSERA_FUNCTION

namespace engine {

/// A number in LibTorch's words, for boxes of x's element.
at::Scalar scalar_for(const number& n, number_kind kind, const at::Tensor& x);

#define TESSERA_FUNCTION(function, called, kind, elements, result, saves, more, computed) \
  at::Tensor compute_##function(const at::Tensor& x, const at::Scalar& n);
/// The computation of functions of a tensor and a number, in LibTorch's words.
TESSERA_FUNCTIONS_OF_A_NUMBER(TESSERA_FUNCTION)
#undef TESSERA_FUNCTION

}  // namespace engine

#define TESSERA_FUNCTION(function, called, kind, elements, result, saves, more, computed) \
  template <engine::number_kind Of>                                                       \
  at::Tensor compute(const function<Of>& f, const at::Tensor& x) {                        \
    return engine::compute_##function(x, engine::scalar_for(f.n, Of, x));                 \
  }
/// The same of a tensor and a number.
TESSERA_FUNCTIONS_OF_A_NUMBER(TESSERA_FUNCTION)
#undef TESSERA_FUNCTION

#define TESSERA_FUNCTION(function, ...) at::Tensor compute(const function& f, const at::Tensor& x);
/// The same of activations.
TESSERA_ACTIVATIONS_OF_A_NUMBER(TESSERA_FUNCTION)
TESSERA_ACTIVATIONS_OF_TWO_NUMBERS(TESSERA_FUNCTION)
#undef TESSERA_FUNCTION

/// x where it holds, else y.
at::Tensor compute(const where&, const at::Tensor& holds, const at::Tensor& x, const at::Tensor& y);

namespace engine {

/// The named dimensions in order, all of a tensor when none is named.
template <int... Dims>
std::vector<index_t> dims_named(index_t rank) {
  std::vector<index_t> dims;
  for (int d = 0; d < rank; ++d)
    if (sizeof...(Dims) == 0 || among<Dims...>(d)) dims.push_back(d);
  return dims;
}

#define TESSERA_FUNCTION(function, kind, elements, result, reads, with) \
  at::Tensor compute_##function(const local_boxes& boxes, const at::Tensor& x, at::IntArrayRef dims);
/// What reductions compute of this worker's boxes: its term.
TESSERA_REDUCTIONS(TESSERA_FUNCTION)
#undef TESSERA_FUNCTION

/// Functions with exchanges inside get these exchanges too.
at::Tensor compute_argument(const bound_exchanges& by, const at::Tensor& x, int dim, bool largest);
at::Tensor compute_var(const bound_exchanges& by, const at::Tensor& x, at::IntArrayRef dims, index_t correction);
at::Tensor compute_norm(const bound_exchanges& by, const at::Tensor& x, at::IntArrayRef dims, double p, combine with);
at::Tensor compute_softmax(const bound_exchanges& by, const at::Tensor& x, int dim, bool log);
/// x / max(‖x‖, ε) along a dimension, by its sums of squares.
at::Tensor over_length(const at::Tensor& x, const at::Tensor& squares, int dim, double eps);
at::Tensor compute_normalize(const bound_exchanges& by, const at::Tensor& x, int dim, double eps);

}  // namespace engine

#define TESSERA_FUNCTION(function, kind, elements, result, reads, with)                         \
  template <int... Dims>                                                                        \
  at::Tensor compute(const function<Dims...>&, const local_boxes& boxes, const at::Tensor& x) { \
    return engine::compute_##function(boxes, x, engine::dims_named<Dims...>(x.dim()));          \
  }
/// What reductions compute of this worker's boxes: its term.
TESSERA_REDUCTIONS(TESSERA_FUNCTION)
#undef TESSERA_FUNCTION

template <int Dim, bool Largest>
at::Tensor compute(const argument<Dim, Largest>&, const engine::bound_exchanges& by, const at::Tensor& x) {
  return engine::compute_argument(by, x, Dim, Largest);
}
template <int... Dims>
at::Tensor compute(const var<Dims...>& f, const engine::bound_exchanges& by, const at::Tensor& x) {
  return engine::compute_var(by, x, engine::dims_named<Dims...>(x.dim()), f.n.whole);
}
template <combine With, int... Dims>
at::Tensor compute(const norm<With, Dims...>& f, const engine::bound_exchanges& by, const at::Tensor& x) {
  return engine::compute_norm(by, x, engine::dims_named<Dims...>(x.dim()), f.n.re, With);
}
template <int Dim, bool Log>
at::Tensor compute(const softmax<Dim, Log>&, const engine::bound_exchanges& by, const at::Tensor& x) {
  return engine::compute_softmax(by, x, Dim, Log);
}
template <int Dim>
at::Tensor compute(const normalize<Dim>& f, const engine::bound_exchanges& by, const at::Tensor& x) {
  return engine::compute_normalize(by, x, Dim, f.n.re);
}

namespace engine {

/// A box with a number in front of it and behind it, where the result's box has more.
at::Tensor compute_pad(const bound_exchanges& by, const at::Tensor& x, int dim, index_t before, const at::Scalar& n);

}  // namespace engine

template <int Dim, index_t Before, index_t After, engine::number_kind Of>
at::Tensor compute(const pad<Dim, Before, After, Of>& f, const engine::bound_exchanges& by, const at::Tensor& x) {
  return engine::compute_pad(by, x, Dim, Before, engine::scalar_for(f.n, Of, x));
}

namespace engine {

/// The box with its pairs of features rotated by their places along a dimension.
at::Tensor compute_rotary(const local_box& where, const at::Tensor& x, int dim, index_t base);

}  // namespace engine

template <int Dim, index_t Base>
at::Tensor compute(const rotary<Dim, Base>&, const local_boxes& boxes, const at::Tensor& x) {
  return engine::compute_rotary(boxes.operands[0], x, Dim, Base);
}

inline at::Tensor compute(const cast_value& f, const at::Tensor& x) {
  return x.to(tessera::detail::scalar_type_of(f.to));
}

/// Sums of products of this worker's boxes: terms, where the dimension that is summed over is cut.
at::Tensor compute(const matmul&, const at::Tensor& x, const at::Tensor& y);

namespace engine {

/// The product of the boxes, summed over the letters that the result lacks.
at::Tensor sum_of_products(const signature& op, at::TensorList x);

/// The same where the parts of a dimension come, or go, one after another.
at::Tensor streamed_sum_of_products(const signature& op, const bound_exchanges& by, const std::vector<at::Tensor>& x);

}  // namespace engine

template <const signature& S, std::same_as<at::Tensor>... Boxes>
  requires(S.streams() == 0)
at::Tensor compute(const einsum<S>&, const Boxes&... x) {
  return engine::sum_of_products(S, {x...});
}
template <const signature& S, std::same_as<at::Tensor>... Boxes>
  requires(S.streams() != 0)
at::Tensor compute(const einsum<S>&, const engine::bound_exchanges& by, const Boxes&... x) {
  return engine::streamed_sum_of_products(S, by, {x...});
}

template <int... Dims>
at::Tensor compute(const permute<Dims...>&, const at::Tensor& x) {
  return x.permute({index_t{Dims}...});
}
template <int First, int Second>
at::Tensor compute(const transpose<First, Second>&, const at::Tensor& x) {
  return x.transpose(First, Second);
}
template <int Dim, class Q, std::same_as<at::Tensor>... Boxes>
at::Tensor compute(const concat<Dim, Q>&, const engine::bound_exchanges& by, const Boxes&... x) {
  std::size_t i = 0;
  std::vector<at::Tensor> taken{by.exchanged(x, i++)...};
  if (taken[0].dim() > 1) return at::cat(taken, Dim);
  // LibTorch leaves vectors of no element out of the graph of its backward, so they are columns
  for (at::Tensor& column : taken) column = column.unsqueeze(1);
  return at::cat(taken).squeeze(1);
}

namespace engine {

/// The elements of a box under the extents of the result.
at::Tensor reshaped(const local_boxes& boxes, const at::Tensor& x);

}  // namespace engine

template <int... Dims>
at::Tensor compute(const unsqueeze<Dims...>&, const local_boxes& boxes, const at::Tensor& x) {
  return engine::reshaped(boxes, x);
}
template <int... Dims>
at::Tensor compute(const squeeze<Dims...>&, const local_boxes& boxes, const at::Tensor& x) {
  return engine::reshaped(boxes, x);
}
template <int First, int Last>
at::Tensor compute(const flatten<First, Last>&, const local_boxes& boxes, const at::Tensor& x) {
  return engine::reshaped(boxes, x);
}
template <int Dim, index_t Inner>
at::Tensor compute(const unflatten<Dim, Inner>&, const local_boxes& boxes, const at::Tensor& x) {
  return engine::reshaped(boxes, x);
}
template <int Dim, index_t Extent>
at::Tensor compute(const expand<Dim, Extent>&, const local_boxes& boxes, const at::Tensor& x) {
  return x.expand(tessera::detail::sizes_of(boxes.result.held));
}
template <int Dim, index_t Begin, index_t End>
at::Tensor compute(const slice<Dim, Begin, End>&, const local_boxes& boxes, const at::Tensor& x) {
  return x.narrow(Dim, boxes.result.first(Dim) + Begin - boxes.operands[0].first(Dim), boxes.result.size(Dim));
}

}  // namespace functions

namespace detail {

/// The computation of a function, as a function object.
template <class F>
struct computing {
  const F& f;
  template <class... Given>
    requires requires(const F& g, const Given&... x) { compute(g, x...); }
  auto operator()(const Given&... x) const {
    return compute(f, x...);
  }
};

/// A number for a function, and for the number that it holds.
template <class F>
std::uint64_t number_of_function(const F& f) {
  fingerprint made_by;
  made_by << number_of_type<F>();
  if constexpr (HoldsNumber<F>) made_by << std::bit_cast<std::uint64_t>(f.n.re) << std::bit_cast<std::uint64_t>(f.n.im);
  return made_by.value();
}

/// A function on tensors whose layouts are values: a local operation by its signature, another with its exchanges.
template <class F, class... Operands>
tensor<dyn> run(const F& f, const Operands&... x) {
  const function_value gives = f.on(value_at_hand(x)...);
  if constexpr (requires { f.signature_on(x.layout()...); }) {
    return local_operation(f.signature_on(x.layout()...).kind, gives, {&x...}, number_of_function(f))
        .run(computing<F>{f}, x.local()...);
  } else {
    const local_operation here(linearity::nonlinear, gives, {&x...}, number_of_function(f));
    const auto computed = [&](const bound_exchanges& by) { return compute(f, by, x.local()...); };
    if constexpr (requires { f.at; }) return here.exchanging(F::name, f.exchanges(value_at_hand(x)...), computed, f.at);
    else return here.exchanging(F::name, f.exchanges(value_at_hand(x)...), computed);
  }
}

}  // namespace detail

namespace functions {

/// The entry point of all functions: every call is this. It refuses while compiling what the function makes of operands
/// that are typed; on `tensor<dyn>` the same refusals are thrown.
template <class F, class... Operands>
  requires(engine::kind_of<F> == kind::function && ((engine::kind_of<Operands> != kind::flow) && ...))
auto call(const F& f, const Operands&... x) {
  if constexpr (((engine::kind_of<Operands> == kind::dynamic_tensor) && ...)) {
    return tessera::detail::run(f, x...);
  } else {
    using Typed = tessera::detail::applied_to<F, Operands...>;
    Typed::verdict::template refuse<typename Typed::verdict>();
    if constexpr (Typed::verdict::ok) return typename Typed::type(tessera::detail::run(f, x.dynamic()...));
    else return typename Typed::type();
  }
}

namespace engine {

/// Any function of single elements.
template <class Compute>
struct of_each : of_one<linearity::nonlinear, takes::everything, gives::same> {
  const Compute* computed = nullptr;

  friend at::Tensor compute(const of_each& f, const at::Tensor& x) { return (*f.computed)(x); }
};

}  // namespace engine

}  // namespace functions

/// f(x) element by element, with any f: non-linear, so x must not be partial.
template <engine::AnyTensor X, class F>
auto map_elements(const X& x, const F& f) {
  functions::engine::of_each<F> each;
  each.computed = &f;
  return functions::call(each, x);
}

}  // namespace tessera

#ifndef TESSERA_COMPILED
#include <tessera/tensor/functions_impl.hpp>
#endif
