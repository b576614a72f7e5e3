#pragma once

#include <tessera/operation/functions/function.hpp>
#include <tessera/operation/functions/operands.hpp>

namespace tessera {

namespace functions {

/// The signature of what is summed over named dimensions, over all when none is named.
template <int... Dims>
constexpr signature summed(const layout& x) {
  signature s;
  s.kind = linearity::multilinear;
  s.operands.push(letters_of(x.dims.count));
  const int dims[]{Dims..., 0};
  for (int i = 0; i < static_cast<int>(sizeof...(Dims)); ++i) {
    if (dims[i] < 0 || dims[i] >= x.dims.count) s.why = refusal{code::dimension_not_there, dims[i], x.dims.count};
    for (int before = 0; before < i; ++before)
      if (dims[before] == dims[i]) s.why = refusal{code::letter_named_twice, 0, dims[i]};
  }
  for (int d = 0; d < x.dims.count; ++d)
    if (sizeof...(Dims) > 0 && !((d == Dims) || ...)) s.result.push(static_cast<char>('a' + d));
  return s;
}

template <int... Dims>
struct sum : function {
  static constexpr const char* name = "sum";
  constexpr signature what(const layout& x) const { return summed<Dims...>(x); }
  constexpr function_value on(const tensor_value& x) const { return infer_values(what(x.layout), x.element, x); }
};

/// x[…, i, k] y[…, k, j] → [… i, j].
struct matmul : function {
  static constexpr const char* name = "matmul";
  constexpr signature what(const layout& x, const layout&) const {
    signature s;
    s.kind = linearity::multilinear;
    letters left = letters_of(x.dims.count - 2);
    letters right = left;
    letters out = left;
    for (char c : {'x', 'z'}) left.push(c);
    for (char c : {'z', 'y'}) right.push(c);
    for (char c : {'x', 'y'}) out.push(c);
    s.operands.push(left);
    s.operands.push(right);
    s.result = out;
    return s;
  }
  constexpr function_value on(const tensor_value& x, const tensor_value& y) const {
    return infer_values(what(x.layout, y.layout), x.element, x, y);
  }
};

}  // namespace functions

/// Σ over the named dimensions (over all when none is named); a sum over a cut dimension is partial. An empty box gives 0.
template <int... Dims, AnyTensor X>
auto sum(const X& x) {
  return call(functions::sum<Dims...>{}, x);
}

/// x[…, i, k] y[…, k, j]; a contraction over a dimension that both have cut alike is partial.
template <class X, class Y>
  requires(DistributedTensor<X> || DistributedTensor<Y>)
auto matmul(const X& x, const Y& y) {
  return call(functions::matmul{}, x, y);
}

}  // namespace tessera
