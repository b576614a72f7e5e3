#pragma once

#include <tessera/plan/interval.hpp>
#include <tessera/tensor/stream/stream_function.hpp>

#include <functional>

namespace tessera::nn::engine {

using tessera::engine::interval;
using tessera::engine::stream_function;
using tessera::engine::stream_result;

/// The queries of a worker, as a step of attention meets them: of these global indices, of heads of which each key
/// serves `each`.
struct attended_queries {
  std::vector<interval> rows;
  index_t each = 1;
  bool causal = false;
  bool masked = false;  ///< a mask comes behind the values
  index_t split = 0;    ///< into so many heads the features of keys and values are still to be split here

  /// How much is met at once: keys, and queries whose last key is their own place.
  struct limits {
    index_t keys, diagonal;
  };
  /// Calls f(rows, keys, diagonal) with what queries see of the keys [a, b), by their places here. That is all of a
  /// block, or of one with as many keys as queries those up to its own place.
  void each_block(const interval& keys, const limits& most,
                  const std::function<void(const interval&, const interval&, bool diagonal)>& f) const;
};

/// Attention of all queries to a piece of the keys. Its results are a state: what queries read so far, and the
/// logarithm of the sum of their weights, by which two pieces merge.
///
/// Online softmax: Milakov and Gimelshein, 2018; rings of it: Liu, Zaharia and Abbeel, 2023.
///
/// Operands: queries [n, h, t, d], keys [n…, s, g, d], values [n…, s, g, e], perhaps a mask [n…, t, s]. Results: [n, h,
/// t, e] and [n, h, t].
class attention_step final : public stream_function {
 public:
  explicit attention_step(attended_queries q) : q_(std::move(q)) {}

  void add(const std::vector<at::Tensor>& pieces, const interval& where,
           const std::vector<stream_result>& results) const override;
  std::shared_ptr<const stream_function> gradient() const override;

 private:
  attended_queries q_;
};

/// The share of a piece in the gradients of attention, by the merged result and logarithm. Of higher order it is
/// composed of LibTorch's differentiable functions.
class attention_gradient final : public stream_function {
 public:
  explicit attention_gradient(attended_queries q) : q_(std::move(q)) {}

  void add(const std::vector<at::Tensor>& pieces, const interval& where,
           const std::vector<stream_result>& results) const override;
  std::shared_ptr<const stream_function> gradient() const override;

 private:
  attended_queries q_;
};

}  // namespace tessera::nn::engine

#ifndef TESSERA_COMPILED
#include <tessera/nn/layer/attention_step_impl.hpp>
#endif
