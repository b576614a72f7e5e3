#pragma once

#include <tessera/operation/rule/treatment.hpp>
#include <tessera/tensor/stream/stream_function.hpp>

namespace tessera::engine {

/// An operand of a product, or its conjugate.
struct product_factor {
  int operand;
  bool conjugate = false;
};

/// A product of operands whose terms are added to a result.
struct product_term {
  int result;
  std::vector<product_factor> of;
};

/// Sums of products over the letters that a result lacks. The gradient of each factor is the product of the others and
/// of the result's gradient: sums of products are closed under differentiation.
class streamed_products final : public stream_function {
 public:
  streamed_products(std::vector<letters> operands, std::vector<letters> results, std::vector<product_term> terms)
      : operands_(std::move(operands)), results_(std::move(results)), terms_(std::move(terms)) {}

  TESSERA_INLINE void add(const std::vector<at::Tensor>& pieces, const interval& where,
                          const std::vector<stream_result>& results) const override;
  TESSERA_INLINE std::shared_ptr<const stream_function> gradient() const override;

 private:
  std::vector<letters> operands_, results_;
  std::vector<product_term> terms_;
};

}  // namespace tessera::engine

#ifndef TESSERA_COMPILED
#include <tessera/tensor/stream/streamed_products_impl.hpp>
#endif
