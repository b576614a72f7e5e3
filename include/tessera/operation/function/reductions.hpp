#pragma once

#include <tessera/operation/function/shaping.hpp>
#include <tessera/operation/plan/layer_plan.hpp>
#include <tessera/operation/plan/number.hpp>

#include <limits>

// The reductions of dimensions, one a line: name, dependence on the operand, elements taken, element given, what
// backward reads, how terms combine.
// clang-format off
#define TESSERA_REDUCTIONS(f)                                   \
  f(sum, multilinear, everything, counts, nothing, sum)         \
  f(mean, multilinear, fractions, same, nothing, sum)           \
  f(amax, nonlinear, ordered, same, everything, max)            \
  f(amin, nonlinear, ordered, same, everything, min)            \
  f(prod_over, nonlinear, everything, counts, everything, prod) \
  f(any_over, nonlinear, everything, answers, nothing, any)     \
  f(all_over, nonlinear, everything, answers, nothing, all)
// clang-format on

namespace tessera {

namespace functions {

namespace engine {

/// The signature of what reduces named dimensions, all when none is named.
template <int... Dims>
constexpr signature reduced(const layout& x, linearity kind, combine with = combine::sum) {
  signature s;
  s.kind = kind;
  s.with = with;
  s.why = check_dims<Dims...>(x);
  s.operands.push(letters_of(x.dims.count));
  for (int d = 0; d < x.dims.count; ++d)
    if (sizeof...(Dims) > 0 && !among<Dims...>(d)) s.result.push(s.operands[0][d]);
  return s;
}

/// The result of counting x; refused where x is terms whose count has a wider element. For wrapping integers and for
/// booleans, the count of a sum is no sum of counts.
constexpr function_value counted(function_value y, const tensor_value& x) {
  if (!y.why.ok() || x.element == y.result.element || y.result.element == element::boolean) return y;
  for (int a = 0; a < x.layout.placements.count; ++a)
    if (x.layout.placements[a].kind == placement::partial && x.layout.mesh.axes[a].extent > 1)
      y.why = refusal{code::nonlinear_on_partial, x.layout.mesh.axes[a].name, 0};
  for (int d = 0; d < x.layout.dims.count; ++d)
    if (x.layout.dims[d].kind == cover::pending && !x.layout.dims[d].tiles())
      y.why = refusal{code::pending_not_linear, 0, d};
  return y;
}

/// The memory of a reduction of x. A mean is a sum first; narrow integers are counted as wide ones. The gradient of an
/// extreme is shared by all that are as large, who are counted. That of a product has products of all others where an
/// element is 0.
constexpr void hold_reduction(layer_plan& p, const tensor_value& x, gives result, combine with) {
  const element e = x.element;
  if (with == combine::sum && result == gives::same) p.take(p.raw(), x.element);
  if (result == gives::counts && !has_cotangent(e) && e != element::int64) p.take(x.layout, element::int64);
  if (result == gives::answers && e != element::boolean) p.take(x.layout, element::boolean);
  if (with == combine::max || with == combine::min) {
    p.take_back(x.layout, e, 1 + (e == element::float32));
    p.take_back(x.layout, element::boolean);
  }
  if (with != combine::prod) return;
  p.take_back(x.layout, e, 6);
  p.take_back(x.layout, element::boolean);
}

}  // namespace engine

#define TESSERA_FUNCTION(function_name, kind, elements, result, reads, with)                                           \
  template <int... Dims>                                                                                               \
  struct function_name : engine::function {                                                                            \
    static constexpr const char* name = #function_name;                                                                \
    static constexpr engine::saved saves = engine::saved::reads;                                                       \
    constexpr signature signature_on(const layout& x) const {                                                          \
      return engine::reduced<Dims...>(x, engine::linearity::kind, combine::with);                                      \
    }                                                                                                                  \
    constexpr engine::function_value on(const tensor_value& x) const {                                                 \
      return engine::counted(engine::local(signature_on(x.layout), engine::takes::elements, engine::gives::result, x), \
                             x);                                                                                       \
    }                                                                                                                  \
    constexpr void hold(layer_plan& p, const tensor_value& x) const {                                                  \
      engine::hold_reduction(p, x, engine::gives::result, combine::with);                                              \
    }                                                                                                                  \
  };
/// A reduction over named dimensions, over all where none is named, as a value.
TESSERA_REDUCTIONS(TESSERA_FUNCTION)
#undef TESSERA_FUNCTION

namespace engine {

/// A reduction of dimensions by exchanges: whole values along the axes that cut them.
template <int... Dims>
constexpr function_value reduced_by_exchange(const tensor_value& x, takes elements, gives result) {
  function_value y = local(reduced<Dims...>(x.layout, linearity::nonlinear, combine::max), elements, result, x);
  for (int a = 0; y.why.ok() && a < y.result.layout.placements.count; ++a) {
    axis_placement& r = y.result.layout.placements[a];
    if (x.layout.placements[a].kind == placement::partial && r.kind == placement::partial)
      y.why = refusal{code::nonlinear_on_partial, x.layout.mesh.axes[a].name, 0};
    if (r.kind == placement::partial) r = {};
  }
  return y;
}

/// The same of what has a value for one element or more of each dimension.
template <int... Dims>
constexpr function_value reduced_of_some(const tensor_value& x, takes elements, gives result) {
  function_value y = reduced_by_exchange<Dims...>(x, elements, result);
  for (int d = 0; y.why.ok() && d < x.layout.dims.count; ++d)
    if (x.layout.dims[d].extent == 0 && (sizeof...(Dims) == 0 || among<Dims...>(d)))
      y.why = refusal{code::nothing_is_largest, d};
  return y;
}

/// The exchange of what such a function has of one worker's part: terms along the axes that cut the dimensions, whole
/// values behind it.
template <int... Dims>
constexpr exchange_value combining(const layout& x, const layout& whole, combine with, element e) {
  exchange_value y{whole, whole, e};
  for (int a = 0; a < x.placements.count; ++a) {
    const axis_placement& r = x.placements[a];
    const bool reduced = r.kind == placement::cut && (sizeof...(Dims) == 0 || among<Dims...>(r.dimension));
    if (reduced && x.mesh.axes[a].extent > 1) y.from.placements[a] = partial_by(with);
  }
  return y;
}

}  // namespace engine

/// Where along a dimension the largest or the smallest element is; of a cut one, the workers find it together.
template <int Dim, bool Largest>
struct argument : engine::function {
  static constexpr const char* name = Largest ? "argmax" : "argmin";
  static constexpr engine::saved saves = engine::saved::nothing;
  constexpr engine::function_value on(const tensor_value& x) const {
    return engine::reduced_of_some<Dim>(x, engine::takes::ordered, engine::gives::indices);
  }
  /// Indices of all that are as large.
  constexpr void hold(layer_plan& p, const tensor_value& x) const {
    p.take(x.layout, element::int64);
    p.take(x.layout, element::boolean);
  }
  /// The best element, then the least index of one.
  constexpr engine::exchange_values exchanges(const tensor_value& x) const {
    const layout whole = on(x).result.layout;
    engine::exchange_values all = engine::no_items<engine::exchange_value, 4>;
    all.push(engine::combining<Dim>(x.layout, whole, Largest ? combine::max : combine::min, x.element));
    all.push(engine::combining<Dim>(x.layout, whole, combine::min, element::int64));
    return all;
  }
};

/// The mean of (x − mean x)², its divisor smaller by a correction.
template <int... Dims>
struct var : engine::function {
  static constexpr const char* name = "var";
  engine::number n = 1;
  constexpr engine::function_value on(const tensor_value& x) const {
    return engine::reduced_by_exchange<Dims...>(x, engine::takes::reals, engine::gives::same);
  }
  /// The distances from the mean, and their squares.
  constexpr void hold(layer_plan& p, const tensor_value& x) const {
    const bool widens = x.element != element::float64;
    p.saves = engine::saved_tensors::saving(0);
    p.make(x.layout, element::float64);
    p.take(x.layout, element::float64, 1 + widens);
    p.take_back(x.layout, element::float64, 2 + widens);
  }
  /// The sum of x, then that of squares.
  constexpr engine::exchange_values exchanges(const tensor_value& x) const {
    engine::exchange_values all = engine::no_items<engine::exchange_value, 4>;
    for (int i = 0; i < 2; ++i)
      all.push(engine::combining<Dims...>(x.layout, on(x).result.layout, combine::sum, element::float64));
    return all;
  }
};

/// (Σ |x|ᵖ)^(1/p); the largest |x| where p is infinite: a maximum is exchanged, and how many there are, which share its
/// gradient.
template <combine With, int... Dims>
struct norm : engine::function {
  static constexpr const char* name = "norm";
  engine::number n = 2;
  constexpr engine::function_value on(const tensor_value& x) const {
    if (!(n.re > 0)) return {{}, refusal{code::norm_not_positive}};
    if (With == combine::max) return engine::reduced_of_some<Dims...>(x, engine::takes::reals, engine::gives::same);
    return engine::reduced_by_exchange<Dims...>(x, engine::takes::reals, engine::gives::same);
  }
  /// The absolute values, and their powers; of roots where there is something, of a maximum where it is.
  constexpr void hold(layer_plan& p, const tensor_value& x) const {
    const bool widens = x.element != element::float64, roots = With != combine::max && n.re < 1;
    p.saves = engine::saved_tensors::saving(!widens);
    p.make(x.layout, element::float64, 1 + 3 * roots);
    p.remember(x.layout, element::float64, widens);
    p.take(x.layout, element::float64, With == combine::max ? 3 : 2 * roots + (n.re != 1 || widens));
    p.take_back(x.layout, element::float64, 2 + widens);
    if (With == combine::max) p.take(x.layout, element::boolean, 2);
  }
  constexpr engine::exchange_values exchanges(const tensor_value& x) const {
    engine::exchange_values all = engine::no_items<engine::exchange_value, 4>;
    all.push(engine::combining<Dims...>(x.layout, on(x).result.layout, With, element::float64));
    if (With == combine::max)
      all.push(engine::combining<Dims...>(x.layout, on(x).result.layout, combine::sum, element::float64));
    return all;
  }
};

}  // namespace functions

/// Asks a reduction for dimensions of one element in place of those that it reduces.
struct keep_dims_t {};
inline constexpr keep_dims_t keep_dims;

// Over the named dimensions, over all when none is named; of a cut dimension they give terms, which any change of
// layout combines. Those of no element at all are neutral: 0 for a sum, the least number for a maximum.
#define TESSERA_FUNCTION(function, kind, elements, result, reads, with) \
  template <int... Dims, engine::AnyTensor X>                           \
  constexpr auto function(const X& x) {                                 \
    return call(functions::function<Dims...>{}, x);                     \
  }                                                                     \
  template <int... Dims, engine::AnyTensor X>                           \
  constexpr auto function(const X& x, keep_dims_t) {                    \
    return unsqueeze<Dims...>(function<Dims...>(x));                    \
  }
/// A reduction over the named dimensions, over all where none is named; over a cut one it gives terms.
TESSERA_REDUCTIONS(TESSERA_FUNCTION)
#undef TESSERA_FUNCTION

/// The index of the first largest element along a dimension.
template <int Dim, engine::AnyTensor X>
constexpr auto argmax(const X& x) {
  return call(functions::argument<Dim, true>{}, x);
}
/// The index of the first smallest element along a dimension.
template <int Dim, engine::AnyTensor X>
constexpr auto argmin(const X& x) {
  return call(functions::argument<Dim, false>{}, x);
}

/// The variance over the named dimensions, over all when none is named: exact over cut ones too, by two sums of all
/// workers in double.
template <int... Dims, engine::AnyTensor X>
constexpr auto var(const X& x, index_t correction = 1) {
  return call(functions::var<Dims...>{{}, correction}, x);
}

/// The p-norm over the named dimensions, over all when none is named.
template <int... Dims, engine::AnyTensor X>
constexpr auto norm(const X& x, double p = 2) {
  const bool infinite = p == std::numeric_limits<double>::infinity();
  return infinite ? call(functions::norm<combine::max, Dims...>{{}, p}, x)
                  : call(functions::norm<combine::sum, Dims...>{{}, p}, x);
}

}  // namespace tessera
