#pragma once

#include <tessera/nn/gradient/leaf_gradients.hpp>

#include <utility>
#include <vector>

namespace tessera::nn::engine {

/// A bundle of which each worker steps one interval.
struct bundle_shard {
  layout lies;                       ///< intervals of one dimension
  std::vector<std::size_t> members;  ///< leaves that are its ranges, end to end
  std::vector<index_t> begins;       ///< and from which element on
  int group = 0;
  interval mine;     ///< this worker's elements
  at::Tensor block;  ///< their values, which an optimizer steps: a leaf of autograd's graph
};

/// How leaves are divided.
struct shard_rule {
  gradient_rule gradients;
  std::vector<int> groups;  ///< of each leaf; none: all are of one
  unsigned axes = 0;        ///< whose workers divide a bundle, a bit for each axis of the mesh
  bool masters = true;      ///< blocks of half types are kept in float
};

/// Gradients of leaves whose sums are divided: of each bundle a worker gets the interval that it steps. Behind a window
/// the leaves themselves have no gradient that could be stepped.
class sharded_gradients final : public leaf_gradients {
 public:
  sharded_gradients(const team_handle& team, std::vector<named_leaf> leaves, const shard_rule& how, call_site at);

  const std::vector<bundle_shard>& shards() const { return shards_; }
  TESSERA_INLINE std::vector<state_value> values() const override;
  /// Gives the leaves what blocks are: an exchange a bundle, of the leaves' element.
  void gather(call_site at);

 private:
  /// The gradient of a block while a window is open.
  struct block_state {
    at::Tensor waiting;  ///< its gradient between two passes: without memory
    at::Tensor before;   ///< what it had when the window opened
    at::Tensor sum;
  };

  TESSERA_INLINE void open_window() override;
  TESSERA_INLINE void go_on() override;
  TESSERA_INLINE void interrupt() override;
  TESSERA_INLINE void close_window(double factor) override;
  double given_times(double) const override { return 1; }
  TESSERA_INLINE void give(const std::vector<std::size_t>& leaves, std::vector<at::Tensor> sums) override;

  /// This worker's elements of a bundle, of what leaves are.
  at::Tensor elements_of(const bundle_shard& of) const;
  at::Tensor rounded(const bundle_shard& of) const;
  void refuse_stepped() const;

  std::vector<bundle_shard> shards_;   ///< in the order in which they travel
  std::vector<std::size_t> shard_of_;  ///< of each leaf
  std::vector<block_state> states_;    ///< of each shard
  std::vector<at::Tensor> divided_;    ///< gradients of leaves behind a window
  bool stepped_ = false;               ///< gradients were given, and nothing was gathered since
};

}  // namespace tessera::nn::engine

#ifndef TESSERA_COMPILED
#include <tessera/nn/gradient/sharded_gradients_impl.hpp>
#endif
