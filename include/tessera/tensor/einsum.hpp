#pragma once

#include <tessera/tensor/functions.hpp>

namespace tessera {

namespace functions::engine {

/// The sum of products of a signature that only run time knows.
struct product_value : function {
  static constexpr const char* name = "einsum";
  signature op;

  template <class... Values>
  function_value on(const tensor_value& x, const Values&... rest) const {
    return local(product_signature(op), takes::numbers, gives::same, x, rest...);
  }
  template <class... Values>
  exchange_values exchanges(const Values&... x) const {
    return op.streams() == 0 ? exchange_values() : stream_exchanges(op, x...);
  }
  template <std::same_as<at::Tensor>... Boxes>
  friend at::Tensor compute(const product_value& f, const bound_exchanges& by, const Boxes&... x) {
    return f.op.streams() == 0 ? sum_of_products(f.op, {x...}) : streamed_sum_of_products(f.op, by, {x...});
  }
};

}  // namespace functions::engine

/// Σ of products over the letters that the result lacks, of a signature that only run time knows: `einsum(
/// operation("btd,bsd->bts").streamed('s', 32), q, k)`.
template <std::same_as<tensor<dyn>>... Rest>
tensor<dyn> einsum(const signature& op, const tensor<dyn>& x, const Rest&... rest) {
  functions::engine::product_value f;
  f.op = op;
  return functions::call(f, x, rest...);
}

}  // namespace tessera
