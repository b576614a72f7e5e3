#pragma once

#include <tessera/operation/local_boxes.hpp>
#include <tessera/operation/typed.hpp>
#include <tessera/tensor/empty_result.hpp>
#include <tessera/tensor/tensor.hpp>
#include <tessera/tensor/tied.hpp>

namespace tessera {

namespace detail {

inline operand operand_of(const tensor<dyn>& x) { return {x.layout(), !has_cotangent(x.type())}; }

/// Checked mode compares the copies of a leaf that is trained, also where nothing moves: a step by hand with gradients that are
/// terms makes them differ.
inline void agree_on_leaf(const tensor<dyn>& x) {
  team_state& team = *x.team();
  const at::Tensor& local = x.local();
  if (team.checked && team.inside() && local.is_leaf() && local.requires_grad())
    team.agree_on_copies(x.layout(), hash_of(local), team.doing());
}

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
  detail::agree_on_leaf(first);
  (detail::agree_on_leaf(rest), ...);
  local_boxes where;
  const int rank = first.team()->rank();
  for (const operand& x : operands) where.operands.push({x.layout, rank});
  where.result = {y.layout, rank};
  at::Tensor local = detail::compute_local(where, compute, first.local(), rest.local()...);
  check(detail::check_plain(local), first.team()->label());
  if (what.kind != linearity::additive) local = detail::tied(local, {first.local(), rest.local()...});
  tensor<dyn> result = detail::tensor_of(first.team(), y.layout, local);
  check(detail::check_element(first.type(), local.scalar_type()), first.team()->label());
  return result;
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
