#pragma once

#include <tessera/operation/plan/saved_tensors.hpp>
#include <tessera/operation/rule/infer.hpp>
#include <tessera/topology/tensor_type.hpp>

namespace tessera {

namespace engine {

/// The result of a function of tensors as values, or its refusal.
struct function_value {
  tensor_value result;
  refusal why;
};

/// A change of layout that a function makes between its local operations.
struct exchange_value {
  layout from;
  layout to;
  tessera::element element{};
  streamed_parts streams{};
};
using exchange_values = static_vector<exchange_value, 4>;

/// A function of tensors is a value: it has a `name`, and `on(values…)` says what it gives. One that is a local
/// operation has its signature, `signature_on(layouts…)`, too, another its `exchanges(values…)`; what it computes of
/// boxes is `compute(f, boxes…)` on the tensor floor. Its memory is `saves`, or `hold(plan, values…)` where it depends
/// on its operands.
///
/// The result and traffic of a function of types follow from its own type; the numbers that it holds can only be
/// refused.
using function = detail::is_a<kind::function>;

/// The result of a local operation, with an element of its own. Operands have one element, `of`; of operations of one's
/// own only those that have a gradient need it, and constants have theirs.
template <class... Values>
constexpr function_value infer_values(const signature& op, element gives, element of, bool constants_differ,
                                      const Values&... x) {
  static_vector<operand, 4> operands = no_items<operand, 4>;
  (operands.push({x.layout, !has_cotangent(x.element)}), ...);
  const inferred y = infer(op, operands);
  function_value all{{y.layout, gives}, y.why};
  const auto agrees = [&](element e) {
    if (all.why.ok() && e != of && (has_cotangent(e) || !constants_differ))
      all.why = refusal{code::wrong_element, of, e};
  };
  (agrees(x.element), ...);
  return all;
}

/// The element of a user's operation: that of the operands that have gradients, of constants alone that of the first.
template <class... Values>
constexpr function_value infer_own(const signature& op, const tensor_value& first, const Values&... rest) {
  element e = first.element;
  [[maybe_unused]] const auto leads = [&](element other) {
    if (!has_cotangent(e) && has_cotangent(other)) e = other;
  };
  (leads(rest.element), ...);
  return infer_values(op, e, e, true, first, rest...);
}

}  // namespace engine

namespace functions::engine {

/// The elements that a function takes.
enum class takes : signed char {
  everything,
  arithmetic,  ///< all but unsigned integers wider than bytes, with which LibTorch hardly computes
  numbers,     ///< these without booleans
  ordered,     ///< these without complex numbers: integers and fractions
  fractions,   ///< what floats, complex numbers too
  reals        ///< what floats and is real
};

/// The element that a function gives: that of its operands, booleans, indices, or the real type of a complex one.
/// `counts` gives int64 for integers and booleans; `answers` gives booleans, but bytes for bytes.
enum class gives : signed char { same, booleans, indices, reals, counts, answers };

/// The tensors that LibTorch saves for the backward of a function; by default everything.
enum class saved : signed char {
  nothing,
  operands,
  result,
  everything,
  own,               ///< a tensor as the result that the function makes besides
  operands_and_own,  ///< this too
  passes,            ///< nothing: the gradients of the operands are that of the result
  view,              ///< nothing: the result is its operand seen otherwise, and so are their gradients
  operand            ///< nothing: the result is its operand, and its gradient another
};

/// The tensors that LibTorch then holds until backward.
constexpr saved_tensors footprint_of(saved kept) {
  if (kept == saved::view) return saved_tensors::viewing();
  const bool operands = kept == saved::operands || kept == saved::everything || kept == saved::operands_and_own;
  const bool result = kept == saved::result || kept == saved::everything;
  saved_tensors f = saved_tensors::saving(operands ? 0xf : 0, 0, result ? 1 : 0);
  f.passes = kept == saved::passes ? 0xf : 0;
  f.view = kept == saved::operand;
  return f;
}

/// Whether one of them is made besides the result.
constexpr bool keeps_its_own(saved kept) { return kept == saved::own || kept == saved::operands_and_own; }

/// Refuses an element that a function does not take.
constexpr refusal check_takes(takes accepted, element e) {
  const bool number = !is_wide_unsigned(e) && e != element::boolean;
  const bool fits = accepted == takes::everything || (accepted == takes::arithmetic && !is_wide_unsigned(e)) ||
                    (accepted == takes::numbers && number) ||
                    (accepted == takes::ordered && number && !is_complex(e)) ||
                    (accepted == takes::fractions && has_cotangent(e)) ||
                    (accepted == takes::reals && has_cotangent(e) && !is_complex(e));
  return fits ? refusal{} : refusal{code::no_function_of_element, static_cast<int>(e)};
}

/// The element that a function gives, of operands of one element.
constexpr element element_given(gives given, element of) {
  if (given == gives::booleans || (given == gives::answers && of != element::uint8)) return element::boolean;
  if (given == gives::counts && !has_cotangent(of)) return element::int64;
  if (given == gives::indices) return element::int64;
  if (given == gives::reals && is_complex(of)) return of == element::complex64 ? element::float32 : element::float64;
  return of;
}

/// The result of a local function of operands of one element, by its signature.
template <class... Values>
constexpr function_value local(const signature& op, takes elements, gives result, const tensor_value& x,
                               const Values&... rest) {
  if (const refusal why = check_takes(elements, x.element); !why.ok()) return {{}, why};
  return infer_values(op, element_given(result, x.element), x.element, false, x, rest...);
}

}  // namespace functions::engine

}  // namespace tessera
