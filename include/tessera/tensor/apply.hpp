#pragma once

#include <tessera/operation/local_boxes.hpp>
#include <tessera/operation/typed.hpp>
#include <tessera/tensor/empty_result.hpp>
#include <tessera/tensor/tensor.hpp>

namespace tessera {

namespace detail {

/// A local operation on operands that are there, but for what it computes.
class local_operation {
 public:
  local_operation(const signature& what, std::initializer_list<const tensor<dyn>*> operands);

  const local_boxes& where() const { return where_; }
  /// The result, of this worker's box of it.
  tensor<dyn> result(at::Tensor local) const;

 private:
  linearity kind_;
  static_vector<const tensor<dyn>*, 4> operands_;
  layout layout_;
  local_boxes where_;
};

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
  const detail::local_operation operation(what, {&first, &rest...});
  return operation.result(detail::compute_local(operation.where(), compute, first.local(), rest.local()...));
}

namespace detail {

// What an operation gives, where all its operands are distributed tensors.
template <class Signature, class... Operands>
struct applied_to {
  using verdict = tensor_wanted<>;
  using type = refused_tensor<>;
};
template <class Signature, TensorType... Operands>
struct applied_to<Signature, Operands...> : typed_result<Signature, Operands...> {};

// Refuses by itself, so that operators take few lines; theirs pass plain functions, since the name of a lambda would repeat
// the operands' types.
template <class Signature, class Compute, class... Operands>
auto typed_apply(const Compute& compute, const Operands&... x) {
  using Typed = applied_to<Signature, Operands...>;
  Typed::verdict::template refuse<typename Typed::verdict>();
  if constexpr (Typed::verdict::ok) return typename Typed::type(apply(Signature::value, compute, x.dynamic()...));
  else return typename Typed::type();
}

}  // namespace detail

/// The same on typed tensors: `apply<scaled>(compute, x, w)` with a constant `scaled`. The result's type follows from its
/// signature; an illegal operation does not compile.
template <const signature& S, class Compute, class... Operands>
auto apply(Compute&& compute, const Operands&... x) {
  return detail::typed_apply<detail::constant_signature<S>>(compute, x...);
}

}  // namespace tessera

#ifndef TESSERA_COMPILED
#include <tessera/tensor/apply.ipp>
#endif
