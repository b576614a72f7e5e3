#pragma once

#include <tessera/operation/footprint.hpp>
#include <tessera/operation/infer.hpp>
#include <tessera/topology/tensor_type.hpp>

namespace tessera {

/// What a function gives of tensors as values, or why it is refused.
struct function_value {
  tensor_value result;
  refusal why;
};

/// A change of layout that a function makes between its local operations.
struct exchange_value {
  layout from;
  layout to;
  tessera::element element{};
};
using exchange_values = static_vector<exchange_value, 4>;

/// A function of tensors is a value: it has a `name`, and `on(values…)` says what it gives. One that is a local operation has its
/// signature, `what(layouts…)`, too, another its `exchanges(values…)`; what it computes of boxes is `compute(f, boxes…)` on the tensor floor.
/// What it holds in memory it says by `saves`, or by `hold(plan, values…)` where that depends on its operands.
///
/// What a function of types gives and moves follows from its own type; the numbers that it holds can only be refused.
using function = detail::is_a<kind::function>;

/// What a local operation gives, with an element of its own. Operands have one element.
template <class... Values>
constexpr function_value infer_values(const signature& what, element gives, const tensor_value& first, const Values&... rest) {
  static_vector<operand, 4> operands = no_items<operand, 4>;
  operands.push({first.layout, !has_cotangent(first.element)});
  (operands.push({rest.layout, !has_cotangent(rest.element)}), ...);
  const inferred y = infer(what, operands);
  function_value all{{y.layout, gives}, y.why};
  [[maybe_unused]] const auto agrees = [&](element e) {
    if (all.why.ok() && e != first.element) all.why = refusal{code::wrong_element, static_cast<int>(first.element), static_cast<int>(e)};
  };
  (agrees(rest.element), ...);
  return all;
}

namespace functions {

/// Which elements a function takes.
enum class takes : signed char {
  everything,
  numbers,    ///< all but booleans
  ordered,    ///< integers and fractions: what is neither boolean nor complex
  fractions,  ///< what floats, complex numbers too
  reals       ///< what floats and is real
};

/// Which element a function gives: that of its operands, booleans, indices, or the real numbers that complex ones are made of.
enum class gives : signed char { same, booleans, indices, reals };

/// What LibTorch saves for the backward of a function; a function that does not say is taken to save everything.
enum class saved : signed char {
  nothing,
  operands,
  result,
  everything,
  passes,  ///< nothing: the gradients of the operands are that of the result
  view,    ///< nothing: the result is its operand seen otherwise, and so are their gradients
  operand  ///< nothing: the result is its operand, and its gradient another
};

constexpr footprint footprint_of(saved what) {
  if (what == saved::view) return footprint::viewing();
  const bool operands = what == saved::operands || what == saved::everything;
  const bool result = what == saved::result || what == saved::everything;
  footprint f = footprint::saving(operands ? 0xf : 0, 0, result ? 1 : 0);
  f.passes = what == saved::passes;
  f.view = what == saved::operand;
  return f;
}

constexpr refusal check_takes(takes what, element e) {
  const bool fits = what == takes::everything || (what == takes::numbers && e != element::boolean) ||
                    (what == takes::ordered && e != element::boolean && !is_complex(e)) ||
                    (what == takes::fractions && has_cotangent(e)) || (what == takes::reals && has_cotangent(e) && !is_complex(e));
  return fits ? refusal{} : refusal{code::no_function_of_element, static_cast<int>(e)};
}

constexpr element element_given(gives what, element of) {
  if (what == gives::booleans) return element::boolean;
  if (what == gives::indices) return element::int64;
  if (what == gives::reals && is_complex(of)) return of == element::complex64 ? element::float32 : element::float64;
  return of;
}

/// What a local function gives of operands of one element, by its signature.
template <class... Values>
constexpr function_value local(const signature& what, takes elements, gives result, const tensor_value& x, const Values&... rest) {
  if (const refusal why = check_takes(elements, x.element); !why.ok()) return {{}, why};
  return infer_values(what, element_given(result, x.element), x, rest...);
}

}  // namespace functions

}  // namespace tessera
