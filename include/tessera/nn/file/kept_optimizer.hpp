#pragma once

#include <tessera/nn/file/checkpoint_part.hpp>

namespace tessera::nn::engine {

/// What an optimizer keeps of one leaf, in LibTorch's own classes, and how it is told: its numbers and its tensors by
/// name.
struct optimizer_rule;

/// An optimizer of LibTorch: SGD, Adam, AdamW, RMSprop, Adagrad. Its tensors lie as their leaves do and have their
/// keys; numbers of steps and the options of its groups are small values.
class kept_optimizer final : public checkpoint_part {
 public:
  kept_optimizer(std::string name, torch::optim::Optimizer& of);

  TESSERA_INLINE std::string kind() const override;
  TESSERA_INLINE void prepare(const known_leaves& leaves) override;
  TESSERA_INLINE void gather(const team_handle& team) override;
  TESSERA_INLINE std::vector<kept_tensor> tensors(const team_handle&) override;
  TESSERA_INLINE small_values values() const override;

  TESSERA_INLINE std::vector<kept_tensor> wanted(const filed_entry& from, const checkpoint_index& index,
                                                 const team_handle& team, const known_leaves& leaves) override;
  TESSERA_INLINE void begin_loading(const filed_entry& from) override;
  TESSERA_INLINE void end_loading(const filed_entry& from) override;

 private:
  /// A leaf that it steps, with the tensors of its state that there are on some worker or in a checkpoint.
  struct stepped_leaf {
    kept_tensor of;
    at::Tensor leaf;
    std::size_t group = 0;
    unsigned has = 0;    ///< a bit for each tensor of a state
    bool known = false;  ///< there is a state
    std::int64_t step = 0;
  };

  std::string key_of(const stepped_leaf& leaf, std::size_t slot) const;

  torch::optim::Optimizer* of_;
  const optimizer_rule* rule_;
  std::vector<std::string> slots_;  ///< the tensors of a state
  std::vector<stepped_leaf> leaves_;
};

}  // namespace tessera::nn::engine

#ifndef TESSERA_COMPILED
#include <tessera/nn/file/kept_optimizer_impl.hpp>
#endif
