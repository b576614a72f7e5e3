#pragma once

#include <tessera/nn/kernel/attended_queries.hpp>
#include <tessera/tensor/stream/stream_function.hpp>

#include <memory>
#include <vector>

namespace tessera::nn::engine {

using tessera::engine::stream_function;
using tessera::engine::stream_result;

/// Attention of all queries to a piece of the keys. Its results are a state: what queries read so far, and the
/// logarithm of the sum of their weights, by which two pieces merge.
///
/// Online softmax: Milakov and Gimelshein, 2018; rings of it: Liu, Zaharia and Abbeel, 2023.
///
/// Operands: queries [n, t, h, d], keys [n…, s, g, d], values [n…, s, g, e], perhaps a mask [n…, t, s] of
/// booleans or of numbers. Results: [n, t, h, e] and [n, h, t].
class attention_step final : public stream_function {
 public:
  explicit attention_step(attended_queries q) : q_(std::move(q)) {}

  TESSERA_INLINE void add(const std::vector<at::Tensor>& pieces, const interval& where,
                          const std::vector<stream_result>& results) const override;
  TESSERA_INLINE std::shared_ptr<const stream_function> gradient() const override;

 private:
  attended_queries q_;
};

/// The share of a piece in the gradients of attention, by the merged result and logarithm. Of higher order it is
/// composed of LibTorch's differentiable functions.
class attention_gradient final : public stream_function {
 public:
  explicit attention_gradient(attended_queries q) : q_(std::move(q)) {}

  TESSERA_INLINE void add(const std::vector<at::Tensor>& pieces, const interval& where,
                          const std::vector<stream_result>& results) const override;
  TESSERA_INLINE std::shared_ptr<const stream_function> gradient() const override;

 private:
  attended_queries q_;
};

}  // namespace tessera::nn::engine

#ifndef TESSERA_COMPILED
#include <tessera/nn/kernel/attention_step_impl.hpp>
#endif
