#pragma once

#include <tessera/nn/gradient/leaf_gradients.hpp>

namespace tessera::nn::engine {

/// Gradients of leaves that become their sums on every worker: `.grad` of each is a range of its bundle's memory.
class bundled_gradients final : public leaf_gradients {
 public:
  bundled_gradients(const team_handle& team, std::vector<named_leaf> leaves, gradient_rule how, call_site at);

  TESSERA_INLINE std::vector<state_value> values() const override;

 private:
  TESSERA_INLINE void open_window() override;
  void let_go(std::size_t leaf) override { before_[leaf].reset(); }
  TESSERA_INLINE void give(const std::vector<std::size_t>& leaves, std::vector<at::Tensor> sums) override;
  void close_window(double) override {}

  std::vector<at::Tensor> before_;  ///< what each leaf had when the window opened
};

}  // namespace tessera::nn::engine

#ifndef TESSERA_COMPILED
#include <tessera/nn/gradient/bundled_gradients_impl.hpp>
#endif
