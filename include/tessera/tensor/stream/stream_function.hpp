#pragma once

#include <tessera/comm/base/header_or_compiled.hpp>
#include <tessera/plan/interval.hpp>

#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>
#include <vector>

namespace tessera::engine {

/// A result of a step of a stream: where its terms are added, or written where it is fresh. Undefined where nobody asks
/// for it.
struct stream_result {
  at::Tensor into;
  bool fresh = false;

  /// Adds terms, or writes them.
  void take(const at::Tensor& terms) const { fresh ? into.copy_(terms) : into.add_(terms); }
};

/// What a stream computes of a piece: of the indices `where` of the streamed dimension. Its gradient is a function of
/// its operands and of its results' gradients, so streams have gradients of every order.
class stream_function {
 public:
  virtual ~stream_function() = default;
  virtual void add(const std::vector<at::Tensor>& pieces, const interval& where,
                   const std::vector<stream_result>& results) const = 0;
  virtual std::shared_ptr<const stream_function> gradient() const = 0;
};

/// A function that LibTorch differentiates: each step's gradient computes the step again.
class recorded_function final : public stream_function {
 public:
  using computed = std::function<std::vector<at::Tensor>(const std::vector<at::Tensor>& pieces, const interval& where)>;

  recorded_function(computed f, std::size_t operands, std::size_t results)
      : f_(std::move(f)), operands_(operands), results_(results) {}

  TESSERA_INLINE void add(const std::vector<at::Tensor>& pieces, const interval& where,
                          const std::vector<stream_result>& results) const override;
  TESSERA_INLINE std::shared_ptr<const stream_function> gradient() const override;

 private:
  computed f_;
  std::size_t operands_, results_;
};

}  // namespace tessera::engine

#ifndef TESSERA_COMPILED
#include <tessera/tensor/stream/stream_function_impl.hpp>
#endif
