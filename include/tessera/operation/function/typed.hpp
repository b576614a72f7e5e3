#pragma once

#include <tessera/operation/plan/function.hpp>
#include <tessera/topology/canonical_tensor.hpp>

namespace tessera {

namespace detail {

/// A signature that is a constant of the program, as a function: what it computes is told with each call.
template <const signature& S>
struct constant_signature : function {
  template <class... Layouts>
  constexpr const signature& signature_on(const Layouts&...) const {
    return S;
  }
  template <class... Values>
  constexpr function_value on(const tensor_value& first, const Values&... rest) const {
    if (sizeof...(rest) >= decltype(signature::operands)::capacity)
      return {{}, refusal{code::signature_too_large, 1 + sizeof...(rest), 0}};
    return infer_own(S, first, rest...);
  }
};

// The kinds of an operation's arguments, and the first operand that is refused.
template <class F, class... Operands>
constexpr refusal check_operands() {
  return first_of(check_kinds<kind::operation, kind::function, F>(),
                  check_kinds<kind::operation, kind::tensor, Operands...>(1),
                  described<as_tensor<Operands>>::verdict_source::value...);
}

/// A function on tensor types: the value of its result, or why it is refused.
template <class F, class... Operands>
struct function_result {
  static constexpr function_value of = [] {
    function_value refused;
    refused.why = check_operands<F, Operands...>();
    if constexpr (check_operands<F, Operands...>().ok()) return F{}.on(described<Operands>::value...);
    else return refused;
  }();
  static constexpr const refusal& why = of.why;
  static constexpr const tensor_value& value = of.result;
};

// The operand that has the most dimensions: the result's extents have its names.
template <class First, class...>
struct widest {
  using type = First;
};
template <class First, class Second, class... Rest>
struct widest<First, Second, Rest...>
    : widest<
          std::conditional_t<(described<First>::value.layout.dims.count < described<Second>::value.layout.dims.count),
                             Second, First>,
          Rest...> {};

/// The same as a verdict and a type.
template <class F, class First = void, class... Rest>
struct typed_result
    : named_result<typename widest<as_tensor<First>, as_tensor<Rest>...>::type, function_result<F, First, Rest...>,
                   typename described<as_tensor<First>>::mesh_type> {};

// Refuses apart from the operands, whose types would be printed once more.
template <class Verdict, class Type>
struct type_unless_refused {
  using type = Type;
  static_assert((Verdict::template refuse<Verdict>(), true));
};

}  // namespace detail

/// The type that a function gives of operands, as in `result_type<functions::relu, X>`; an illegal one does not
/// compile.
template <class F, class... Operands>
using result_type = typename detail::type_unless_refused<typename detail::typed_result<F, Operands...>::verdict,
                                                         typename detail::typed_result<F, Operands...>::type>::type;

/// The same for a signature that is a constant: `operation_type<scaled, X, W>` with `constexpr auto scaled =
/// operation(...)`.
template <const signature& S, class... Operands>
using operation_type = typename detail::type_unless_refused<
    typename detail::typed_result<detail::constant_signature<S>, Operands...>::verdict,
    typename detail::typed_result<detail::constant_signature<S>, Operands...>::type>::type;

}  // namespace tessera
