#pragma once

#include <tessera/operation/function/element_by_element.hpp>
#include <tessera/operation/function/elementwise_list.hpp>
#include <tessera/operation/function/operands.hpp>
#include <tessera/operation/plan/layer_plan.hpp>
#include <tessera/operation/plan/number.hpp>

namespace tessera {

namespace functions {

namespace detail {

// The gradient of an operand that is repeated is as large as the result before it is summed, also where it passes.
constexpr void hold_unsummed(layer_plan& p) {
  for (int o = 0; o < p.inputs(); ++o) {
    const layout &x = p.given(o), &y = p.raw();
    bool repeats = x.dims.count != y.dims.count;
    for (int d = 0; !repeats && d < x.dims.count; ++d) repeats = x.dims[d].extent != y.dims[d].extent;
    if (!repeats) continue;
    if ((p.saves.passes >> o & 1u) == 0) p.take_back(y, p.element_of(0, element::float64));
    p.saves.passes &= ~(1u << o);
  }
}

}  // namespace detail

namespace engine {

/// A function of one tensor, element by element; of two; and of a tensor and a number n.
template <linearity Kind, takes Elements, gives Result, saved Saves = saved::everything, index_t More = 0>
struct of_one : function {
  static constexpr saved saves = Saves;
  static constexpr index_t more = More;
  constexpr signature signature_on(const layout& x) const { return element_by_element(Kind, x); }
  constexpr function_value on(const tensor_value& x) const {
    return local(signature_on(x.layout), Elements, Result, x);
  }
};
template <linearity Kind, takes Elements, gives Result, saved Saves, index_t More>
struct of_two : function {
  static constexpr saved saves = Saves;
  static constexpr index_t more = More;
  constexpr signature signature_on(const layout& x, const layout& y) const { return element_by_element(Kind, x, y); }
  constexpr function_value on(const tensor_value& x, const tensor_value& y) const {
    return local(signature_on(x.layout, y.layout), Elements, Result, x, y);
  }
  constexpr void hold(layer_plan& p, const tensor_value&, const tensor_value&) const { detail::hold_unsummed(p); }
};
template <linearity Kind, takes Elements, gives Result, saved Saves, index_t More, number_kind Of>
struct of_a_number : function {
  static constexpr saved saves = Saves;
  static constexpr index_t more = More;
  number n;

  constexpr of_a_number() = default;
  constexpr explicit of_a_number(const number& given) : n(given) {}
  constexpr signature signature_on(const layout& x) const { return element_by_element(Kind, x); }
  constexpr function_value on(const tensor_value& x) const {
    if (const refusal why = first_of(check_takes(Elements, x.element), check_number(Of, n, x.element)); !why.ok())
      return {{}, why};
    return local(signature_on(x.layout), Elements, Result, x);
  }
};

}  // namespace engine

#define TESSERA_FUNCTION(function, kind, elements, result, saves, more, computed)                           \
  struct function : engine::of_one<engine::linearity::kind, engine::takes::elements, engine::gives::result, \
                                   engine::saved::saves, more> {                                            \
    static constexpr const char* name = #function;                                                          \
  };
/// A function of one tensor, as a value.
TESSERA_FUNCTIONS_OF_ONE(TESSERA_FUNCTION)
#undef TESSERA_FUNCTION
#define TESSERA_FUNCTION(function, kind, elements, result, saves, more, computed)                           \
  struct function : engine::of_two<engine::linearity::kind, engine::takes::elements, engine::gives::result, \
                                   engine::saved::saves, more> {                                            \
    static constexpr const char* name = #function;                                                          \
  };
/// A function of two tensors, as a value.
TESSERA_FUNCTIONS_OF_TWO(TESSERA_FUNCTION)
#undef TESSERA_FUNCTION
#define TESSERA_FUNCTION(function, called, kind, elements, result, saves, more, computed)                        \
  template <engine::number_kind Of>                                                                              \
  struct function : engine::of_a_number<engine::linearity::kind, engine::takes::elements, engine::gives::result, \
                                        engine::saved::saves, more, Of> {                                        \
    static constexpr const char* name = #function;                                                               \
    using engine::of_a_number<engine::linearity::kind, engine::takes::elements, engine::gives::result,           \
                              engine::saved::saves, more, Of>::of_a_number;                                      \
  };
/// A function of a tensor and a number, as a value.
TESSERA_FUNCTIONS_OF_A_NUMBER(TESSERA_FUNCTION)
#undef TESSERA_FUNCTION

namespace engine {

/// An activation whose options are numbers, the first and the second of n.
template <saved Saves, index_t More>
struct activation : function {
  static constexpr saved saves = Saves;
  static constexpr index_t more = More;
  number n;

  constexpr activation(double a, double b) {
    n.re = a;
    n.im = b;
  }
  constexpr signature signature_on(const layout& x) const { return element_by_element(linearity::nonlinear, x); }
  constexpr function_value on(const tensor_value& x, bool defined) const {
    if (!defined) return {{}, refusal{code::activation_undefined}};
    return local(signature_on(x.layout), takes::reals, gives::same, x);
  }
};

}  // namespace engine

#define TESSERA_FUNCTION(function, saves, more, first, otherwise, holds, computed)                                \
  struct function : engine::activation<engine::saved::saves, more> {                                              \
    static constexpr const char* name = #function;                                                                \
    constexpr explicit function(double a = otherwise) : activation(a, 0) {}                                       \
    static constexpr bool defined([[maybe_unused]] double a) { return holds; }                                    \
    constexpr engine::function_value on(const tensor_value& x) const { return activation::on(x, defined(n.re)); } \
  };
/// An activation of one option, as a value.
TESSERA_ACTIVATIONS_OF_A_NUMBER(TESSERA_FUNCTION)
#undef TESSERA_FUNCTION
#define TESSERA_FUNCTION(function, saves, more, first, otherwise, second, or_else, holds, computed)       \
  struct function : engine::activation<engine::saved::saves, more> {                                      \
    static constexpr const char* name = #function;                                                        \
    constexpr explicit function(double a = otherwise, double b = or_else) : activation(a, b) {}           \
    static constexpr bool defined([[maybe_unused]] double a, [[maybe_unused]] double b) { return holds; } \
    constexpr engine::function_value on(const tensor_value& x) const {                                    \
      return activation::on(x, defined(n.re, n.im));                                                      \
    }                                                                                                     \
  };
/// An activation of two options, as a value.
TESSERA_ACTIVATIONS_OF_TWO_NUMBERS(TESSERA_FUNCTION)
#undef TESSERA_FUNCTION

/// x where a boolean tensor holds, else y.
struct where : engine::function {
  static constexpr const char* name = "where";
  constexpr void hold(layer_plan& p, const tensor_value&, const tensor_value&, const tensor_value&) const {
    p.saves = engine::saved_tensors::saving(1);
    detail::hold_unsummed(p);
  }
  constexpr signature signature_on(const layout& holds, const layout& x, const layout& y) const {
    return engine::element_by_element(engine::linearity::nonlinear, holds, x, y);
  }
  constexpr engine::function_value on(const tensor_value& holds, const tensor_value& x, const tensor_value& y) const {
    if (holds.element != element::boolean) return {{}, refusal{code::wrong_element, element::boolean, holds.element}};
    if (x.element != y.element) return {{}, refusal{code::wrong_element, x.element, y.element}};
    if (const refusal why = engine::check_takes(engine::takes::arithmetic, x.element); !why.ok()) return {{}, why};
    static_vector<operand, 4> operands = engine::no_items<operand, 4>;
    for (const tensor_value* v : {&holds, &x, &y}) operands.push({v->layout, !engine::has_cotangent(v->element)});
    const inferred chosen = infer(signature_on(holds.layout, x.layout, y.layout), operands);
    return {{chosen.layout, x.element}, chosen.why};
  }
};

}  // namespace functions

// The calls: f(x), f(x, y), f(x, n), f(x, options…), for tensors of any kind.
#define TESSERA_FUNCTION(function, kind, elements, result, saves, more, computed) \
  template <engine::AnyTensor X>                                                  \
  constexpr auto function(const X& x) {                                           \
    return call(functions::function{}, x);                                        \
  }
/// A function of one tensor, element by element: f(x).
TESSERA_FUNCTIONS_OF_ONE(TESSERA_FUNCTION)
#undef TESSERA_FUNCTION
#define TESSERA_FUNCTION(function, kind, elements, result, saves, more, computed) \
  template <engine::AnyTensor X, engine::AnyTensor Y>                             \
  constexpr auto function(const X& x, const Y& y) {                               \
    return call(functions::function{}, x, y);                                     \
  }
/// A function of two tensors, element by element: f(x, y).
TESSERA_FUNCTIONS_OF_TWO(TESSERA_FUNCTION)
#undef TESSERA_FUNCTION

#define TESSERA_FUNCTION(function, called, kind, elements, result, saves, more, computed) \
  template <engine::AnyTensor X, engine::Number N>                                        \
  constexpr auto called(const X& x, const N& n) {                                         \
    return call(functions::function<functions::engine::kind_of_number<N>>(n), x);         \
  }
/// A function of a tensor and a number that all workers know: f(x, n).
TESSERA_FUNCTIONS_OF_A_NUMBER(TESSERA_FUNCTION)
#undef TESSERA_FUNCTION
#define TESSERA_FUNCTION(function, saves, more, first, otherwise, holds, computed) \
  template <engine::AnyTensor X>                                                   \
  constexpr auto function(const X& x, double first = otherwise) {                  \
    return call(functions::function(first), x);                                    \
  }
/// An activation with LibTorch's option: f(x, a).
TESSERA_ACTIVATIONS_OF_A_NUMBER(TESSERA_FUNCTION)
#undef TESSERA_FUNCTION
#define TESSERA_FUNCTION(function, saves, more, first, otherwise, second, or_else, holds, computed) \
  template <engine::AnyTensor X>                                                                    \
  constexpr auto function(const X& x, double first = otherwise, double second = or_else) {          \
    return call(functions::function(first, second), x);                                             \
  }
/// An activation with LibTorch's two options: f(x, a, b).
TESSERA_ACTIVATIONS_OF_TWO_NUMBERS(TESSERA_FUNCTION)
#undef TESSERA_FUNCTION

/// x where a boolean tensor holds, else y.
template <engine::AnyTensor C, engine::AnyTensor X, engine::AnyTensor Y>
constexpr auto where(const C& holds, const X& x, const Y& y) {
  return call(functions::where{}, holds, x, y);
}

/// x between two numbers of its element.
template <engine::AnyTensor X, engine::Number N, engine::Number M>
constexpr auto clamp(const X& x, const N& least, const M& most) {
  return clamp_max(clamp_min(x, least), most);
}

/// x − tanh x.
template <engine::AnyTensor X>
constexpr auto tanhshrink(const X& x) {
  return call(functions::sub{}, x, tanh(x));
}

/// x + y: operands alike along every axis, so terms meet terms and copies meet copies.
template <class X, class Y>
  requires(DistributedTensor<X> || DistributedTensor<Y>)
constexpr auto operator+(const X& x, const Y& y) {
  return call(functions::add{}, x, y);
}

/// x − y, under the rules of a sum.
template <class X, class Y>
  requires(DistributedTensor<X> || DistributedTensor<Y>)
constexpr auto operator-(const X& x, const Y& y) {
  return call(functions::sub{}, x, y);
}

/// x · y, element by element: at most one of them partial.
template <class X, class Y>
  requires(DistributedTensor<X> || DistributedTensor<Y>)
constexpr auto operator*(const X& x, const Y& y) {
  return call(functions::mul{}, x, y);
}

/// x / y, element by element; not of terms, since only x * reciprocal(y) says which of them may be partial.
template <class X, class Y>
  requires(DistributedTensor<X> || DistributedTensor<Y>)
constexpr auto operator/(const X& x, const Y& y) {
  return call(functions::div{}, x, y);
}

/// −x.
template <DistributedTensor X>
constexpr auto operator-(const X& x) {
  return call(functions::neg{}, x);
}

/// x with a number of its element: products and quotients of terms too.
template <DistributedTensor X, engine::Number N>
constexpr auto operator*(const X& x, const N& n) {
  return call(functions::times<functions::engine::kind_of_number<N>>(n), x);
}
template <engine::Number N, DistributedTensor X>
constexpr auto operator*(const N& n, const X& x) {
  return call(functions::times<functions::engine::kind_of_number<N>>(n), x);
}
template <DistributedTensor X, engine::Number N>
constexpr auto operator/(const X& x, const N& n) {
  return call(functions::divided<functions::engine::kind_of_number<N>>(n), x);
}
template <engine::Number N, DistributedTensor X>
constexpr auto operator/(const N& n, const X& x) {
  return call(functions::dividing<functions::engine::kind_of_number<N>>(n), x);
}
template <DistributedTensor X, engine::Number N>
constexpr auto operator+(const X& x, const N& n) {
  return call(functions::plus<functions::engine::kind_of_number<N>>(n), x);
}
template <engine::Number N, DistributedTensor X>
constexpr auto operator+(const N& n, const X& x) {
  return call(functions::plus<functions::engine::kind_of_number<N>>(n), x);
}
template <DistributedTensor X, engine::Number N>
constexpr auto operator-(const X& x, const N& n) {
  return call(functions::minus<functions::engine::kind_of_number<N>>(n), x);
}
template <engine::Number N, DistributedTensor X>
constexpr auto operator-(const N& n, const X& x) {
  return call(functions::taken_from<functions::engine::kind_of_number<N>>(n), x);
}

}  // namespace tessera
