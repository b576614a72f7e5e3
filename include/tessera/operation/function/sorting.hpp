#pragma once

#include <tessera/operation/function/indexing.hpp>

namespace tessera {

namespace functions {

namespace engine {

/// Values along a dimension, and the indices where they were.
template <class Values, class Indices>
struct values_and_indices {
  Values values;
  Indices indices;
};

/// The elements that indices of the same operand name, which nobody need judge.
template <int Dim, class X, class I>
constexpr auto with_values(const X& x, const I& indices) {
  const auto values = call(take_along<Dim, false>{}, x, indices);
  return values_and_indices<std::remove_const_t<decltype(values)>, I>{values, indices};
}

}  // namespace engine

/// Where the elements along a dimension stand in order; equal ones stay as they were, and no number is the largest.
template <int Dim, bool Descending>
struct argsort : engine::function {
  static constexpr const char* name = "argsort";
  static constexpr engine::saved saves = engine::saved::nothing;

  constexpr signature signature_on(const layout& x) const {
    signature s;
    s.operands.push(engine::letters_of(x.dims.count));
    s.result = s.operands[0];
    s.why = engine::check_dims<Dim>(x);
    if (!s.why.ok()) return s;
    const char along[]{s.result[Dim], '\0'};
    return s.whole(along);
  }
  constexpr engine::function_value on(const tensor_value& x) const {
    return engine::local(signature_on(x.layout), engine::takes::ordered, engine::gives::indices, x);
  }
  /// The elements in order.
  constexpr void hold(layer_plan& p, const tensor_value& x) const { p.take(x.layout, x.element); }
};

/// The first k of these.
template <int Dim, bool Largest>
struct topk_of : engine::function {
  static constexpr const char* name = "topk";
  static constexpr engine::saved saves = engine::saved::nothing;
  using held = topk_of;  ///< what a program that is put together while it runs holds
  index_t k = 0;

  constexpr signature signature_on(const layout& x) const {
    signature s = argsort<Dim, Largest>{}.signature_on(x);
    if (!s.why.ok()) return s;
    const index_t n = x.dims[Dim].extent;
    if (k < 0) s.why = refusal{code::extent_negative, Dim, k};
    else if (n != dynamic && k > n) s.why = refusal{code::range_outside, Dim, n, 0, k};
    s.result[Dim] = 'A';
    return s.added('A', k);
  }
  constexpr engine::function_value on(const tensor_value& x) const {
    return engine::local(signature_on(x.layout), engine::takes::ordered, engine::gives::indices, x);
  }
  /// All elements in order and where they are, before the first k are there.
  constexpr void hold(layer_plan& p, const tensor_value& x) const {
    layout others = x.layout;
    if (others.dims[Dim].extent != dynamic) others.dims[Dim].extent -= k;
    p.take(others, x.element);
    p.take(x.layout, element::int64);
  }
};

/// The same of a number that a type names.
template <int Dim, index_t K, bool Largest>
struct topk : topk_of<Dim, Largest> {
  constexpr topk() { this->k = K; }
};

}  // namespace functions

/// The indices that sort a whole dimension; equal elements keep their order: `argsort<1>(x)`, `argsort<1, true>(x)`
/// from the largest on.
template <int Dim, bool Descending = false, engine::AnyTensor X>
constexpr auto argsort(const X& x) {
  return call(functions::argsort<Dim, Descending>{}, x);
}

/// A whole dimension in order, and the indices that sort it: `auto [values, indices] = sort<1>(x)`.
template <int Dim, bool Descending = false, engine::AnyTensor X>
constexpr auto sort(const X& x) {
  return functions::engine::with_values<Dim>(x, argsort<Dim, Descending>(x));
}

/// The k largest elements of a whole dimension, the first of equal ones, from the largest on, and their indices:
/// `topk<1, 3>(x)`, `topk<1, 3, false>(x)` the smallest.
template <int Dim, index_t K, bool Largest = true, engine::AnyTensor X>
constexpr auto topk(const X& x) {
  return functions::engine::with_values<Dim>(x, call(functions::topk<Dim, K, Largest>{}, x));
}
/// The same of a number that only run time knows.
template <int Dim, bool Largest = true, detail::DynamicTensor X>
auto topk(const X& x, index_t k) {
  functions::topk_of<Dim, Largest> f;
  f.k = k;
  return functions::engine::with_values<Dim>(x, call(f, x));
}

}  // namespace tessera
