#pragma once

#include <tessera/operation/infer.hpp>
#include <tessera/topology/canonical_tensor.hpp>

namespace tessera {

namespace detail {

/// A signature that is a constant of the program, as a type with a short name.
template <const signature& S>
struct constant_signature {
  static constexpr const signature& value = S;
};

/// f(x), element by element.
template <int Rank, linearity Kind>
struct unary_signature {
  static constexpr signature value = [] {
    signature s;
    s.kind = Kind;
    s.operands.push(letters_of(Rank));
    s.result = s.operands[0];
    return s;
  }();
};

/// f(x, y), element by element; the one with fewer dimensions lies along the last ones of the other.
template <int Left, int Right, linearity Kind>
struct binary_signature {
  static constexpr signature value = [] {
    constexpr int most = Left < Right ? Right : Left;
    signature s;
    s.kind = Kind;
    s.operands.push(letters_of(Left, static_cast<char>('a' + most - Left)));
    s.operands.push(letters_of(Right, static_cast<char>('a' + most - Right)));
    s.result = letters_of(most);
    return s;
  }();
};

/// Σ over the named dimensions, over all when none is named.
template <int Rank, int... Dims>
struct sum_signature {
  static constexpr signature value = [] {
    signature s;
    s.kind = linearity::multilinear;
    s.operands.push(letters_of(Rank));
    const int dims[]{Dims..., 0};
    for (int i = 0; i < static_cast<int>(sizeof...(Dims)); ++i) {
      if (dims[i] < 0 || dims[i] >= Rank) s.why = refusal{code::dimension_not_there, dims[i], Rank};
      for (int before = 0; before < i; ++before)
        if (dims[before] == dims[i]) s.why = refusal{code::letter_named_twice, 0, dims[i]};
    }
    for (int d = 0; d < Rank; ++d)
      if (sizeof...(Dims) > 0 && !((d == Dims) || ...)) s.result.push(static_cast<char>('a' + d));
    return s;
  }();
};

/// x[…, i, k] y[…, k, j] → [… i, j].
template <int Rank>
struct matmul_signature {
  static constexpr signature value = [] {
    signature s;
    s.kind = linearity::multilinear;
    letters left = letters_of(Rank - 2);
    letters right = left;
    letters out = left;
    for (char c : {'x', 'z'}) left.push(c);
    for (char c : {'z', 'y'}) right.push(c);
    for (char c : {'x', 'y'}) out.push(c);
    s.operands.push(left);
    s.operands.push(right);
    s.result = out;
    return s;
  }();
};

// The kinds of an operation's arguments, and the first operand that is refused.
template <class Signature, class... Operands>
constexpr refusal check_operands() {
  return first_of(check_kinds<kind::operation, kind::signature, Signature>(), check_kinds<kind::operation, kind::tensor, Operands...>(1),
                  described<as_tensor<Operands>>::verdict_source::value...);
}

// The result of an operation on tensors as values; all have one element type.
template <class... Values>
constexpr inferred infer_values(const signature& what, const tensor_value& first, const Values&... rest) {
  static_vector<operand, 4> operands = no_items<operand, 4>;
  operands.push({first.layout, !has_cotangent(first.element)});
  (operands.push({rest.layout, !has_cotangent(rest.element)}), ...);
  inferred y = infer(what, operands);
  [[maybe_unused]] const auto agrees = [&](element e) {
    if (y.why.ok() && e != first.element) y.why = refusal{code::wrong_element, static_cast<int>(first.element), static_cast<int>(e)};
  };
  (agrees(rest.element), ...);
  return y;
}

/// A signature on tensor types: the value of its result, or why it is refused.
template <class Signature, class First, class... Rest>
struct signature_result {
  static constexpr inferred of = [] {
    inferred refused;
    refused.why = check_operands<Signature, First, Rest...>();
    if (refused.why.ok() && sizeof...(Rest) >= decltype(signature::operands)::capacity)
      refused.why = refusal{code::signature_too_large, 1 + sizeof...(Rest), 0};
    if (!refused.why.ok()) return refused;
    if constexpr (check_operands<Signature, First, Rest...>().ok()) return infer_values(Signature::value, described<First>::value, described<Rest>::value...);
    else return refused;
  }();
  static constexpr const refusal& why = of.why;
  static constexpr tensor_value value{of.layout, described<as_tensor<First>>::value.element};
};

/// The same as a verdict and a type.
template <class Signature, class First = void, class... Rest>
struct typed_result : named_result<as_tensor<First>, signature_result<Signature, First, Rest...>> {};

// Refuses apart from the operands, whose types would be printed once more.
template <class Verdict, class Type>
struct type_unless_refused {
  using type = Type;
  static_assert((Verdict::template refuse<Verdict>(), true));
};

}  // namespace detail

/// The type of an operation's result; an illegal operation does not compile.
template <class Signature, class... Operands>
using result_type =
    typename detail::type_unless_refused<typename detail::typed_result<Signature, Operands...>::verdict,
                                         typename detail::typed_result<Signature, Operands...>::type>::type;

/// The same for a signature that is a constant: `operation_type<scaled, X, W>` with `constexpr auto scaled = operation(...)`.
template <const signature& S, class... Operands>
using operation_type =
    typename detail::type_unless_refused<typename detail::typed_result<detail::constant_signature<S>, Operands...>::verdict,
                                         typename detail::typed_result<detail::constant_signature<S>, Operands...>::type>::type;

}  // namespace tessera
