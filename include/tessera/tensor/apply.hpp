#pragma once

#include <tessera/operation/function/typed.hpp>
#include <tessera/operation/plan/stream_exchanges.hpp>
#include <tessera/tensor/autograd/empty_result.hpp>
#include <tessera/tensor/change/bound_exchanges.hpp>
#include <tessera/tensor/stream/stream.hpp>
#include <tessera/tensor/tensor.hpp>

#include <string_view>
#include <typeinfo>

namespace tessera {

namespace detail {

/// Throws what was refused of operands that are there, and operands of different teams.
void check_call(const function_value& gives, std::initializer_list<const tensor<dyn>*> operands);

/// A local operation on operands that are there, but for what it computes.
class local_operation {
 public:
  /// `made_by` tells its results from those of another operation on the same operands.
  local_operation(linearity kind, const function_value& gives, std::initializer_list<const tensor<dyn>*> operands,
                  std::uint64_t made_by);

  const local_boxes& where() const { return where_; }
  /// The result, of this worker's box of it.
  tensor<dyn> result(at::Tensor local) const;

  template <class Compute, class... Boxes>
  tensor<dyn> run(const Compute& compute, const Boxes&... boxes) const {
    if (where_.result.empty())
      return result(empty_result(where_.result.held, {boxes...}, scalar_type_of(gives_.element)));
    if constexpr (std::is_invocable_v<const Compute&, const local_boxes&, const Boxes&...>)
      return result(compute(where_, boxes...));
    else return result(compute(boxes...));
  }
  /// Of several operations with exchanges between them: every worker takes part, also without elements.
  template <class Compute>
  tensor<dyn> exchanging(const char* name, const exchange_values& between, const Compute& compute,
                         const call_site& at = {}) const {
    const team_handle& team = operands_[0]->team();
    const scoped_context now(*team, {.name = name, .at = at});
    std::vector<redistribution> exchanges;
    for (const exchange_value& e : between) exchanges.push_back({team->intern(e.from), team->intern(e.to)});
    static_vector<const layout*, 4> operands;
    for (const tensor<dyn>* x : operands_) operands.push(&x->layout());
    return result(compute(bound_exchanges{team, where_, exchanges, operands}));
  }

  /// The same of pieces that come, or go, one after another; `compute` is kept for their gradients.
  template <class Compute, class... Boxes>
  tensor<dyn> streaming(const signature& op, const Compute& compute, const Boxes&... boxes) const {
    const auto f = [op, kept = std::decay_t<Compute>(compute), where = where_](const std::vector<at::Tensor>& x,
                                                                               const interval& i) {
      return std::vector<at::Tensor>{of_piece(op, kept, where, x, i, indices_below<sizeof...(Boxes)>{})};
    };
    return streamed(op, std::make_shared<recorded_function>(f, sizeof...(Boxes), 1), {boxes...});
  }

 private:
  template <class Compute, int... Index>
  static at::Tensor of_piece(const signature& op, const Compute& compute, const local_boxes& all,
                             const std::vector<at::Tensor>& x, const interval& i, indices<Index...>) {
    if constexpr (std::is_invocable_v<const Compute&, const local_boxes&,
                                      decltype(x[static_cast<std::size_t>(Index)])...>)
      return compute(boxes_of_piece(op, all, i), x[static_cast<std::size_t>(Index)]...);
    else return compute(x[static_cast<std::size_t>(Index)]...);
  }
  static local_boxes boxes_of_piece(const signature& op, local_boxes where, const interval& i);
  tensor<dyn> streamed(const signature& op, std::shared_ptr<const stream_function> f,
                       const std::vector<at::Tensor>& boxes) const;

  linearity kind_;
  tensor_value gives_;
  static_vector<const tensor<dyn>*, 4> operands_;
  local_boxes where_;
  std::uint64_t lineage_ = 0;
};

/// A number for what a type is called, which is one in all processes of a program.
template <class T>
std::uint64_t number_of_type() {
  static const std::uint64_t number = [] {
    const std::string_view name = typeid(T).name();
    return text(name.data(), static_cast<int>(name.size())).hash;
  }();
  return number;
}

/// The engine's record of a tensor without its elements.
inline tensor_value value_at_hand(const tensor<dyn>& x) { return {x.layout(), x.type()}; }

}  // namespace detail

/// Applies a local operation: its signature decides what is legal and how the result lies, `compute` gets the local
/// boxes.
///
///   apply(s, [](const at::Tensor& x, …) { … }, x, …)
///   apply(s, [](const local_boxes& where, const at::Tensor& x, …) { … }, x, …)
///
/// `compute` gives this worker's box of the result, in the element of the operands that have gradients; constants, as
/// indices and masks, have any. Its gradient is LibTorch's, so it is made of differentiable functions of all operands,
/// and does the same on every worker. Of a dimension that is streamed it gets pieces, whose results are placed, or
/// added. It is kept, and called again for their gradients, so it holds what it needs by value.
template <class Compute, class... Operands>
tensor<dyn> apply(const signature& op, Compute&& compute, const tensor<dyn>& first, const Operands&... rest) {
  static_assert(1 + sizeof...(rest) <= decltype(signature::operands)::capacity, "an operation has at most 4 operands");
  const engine::function_value gives =
      engine::infer_own(op, detail::value_at_hand(first), detail::value_at_hand(rest)...);
  const detail::local_operation here(op.kind, gives, {&first, &rest...}, detail::number_of_type<Compute>());
  if (op.streams() != 0) return here.streaming(op, compute, first.local(), rest.local()...);
  return here.run(compute, first.local(), rest.local()...);
}

namespace detail {

// What an operation gives, where all its operands are distributed tensors.
template <class F, class... Operands>
struct applied_to {
  using verdict = verdicts::tensor_wanted<F, Operands...>;
  using type = refused_tensor<>;
};
template <class F, TensorType... Operands>
struct applied_to<F, Operands...> : typed_result<F, Operands...> {};

}  // namespace detail

/// The same on typed tensors: `apply<scaled>(compute, x, w)` with a constant `scaled`. The result's type follows from
/// its signature; an illegal operation does not compile.
template <const signature& S, class Compute, class... Operands>
  requires(((engine::kind_of<Operands> != kind::flow) && ...))
auto apply(Compute&& compute, const Operands&... x) {
  using Typed = detail::applied_to<detail::constant_signature<S>, Operands...>;
  Typed::verdict::template refuse<typename Typed::verdict>();
  if constexpr (Typed::verdict::ok) return typename Typed::type(apply(S, compute, x.dynamic()...));
  else return typename Typed::type();
}

}  // namespace tessera

#ifndef TESSERA_COMPILED
#include <tessera/tensor/apply_impl.hpp>
#endif
