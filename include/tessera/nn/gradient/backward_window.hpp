#pragma once

#include <tessera/nn/gradient/leaf_gradients.hpp>

#include <optional>

namespace tessera::nn {

/// While it lives, backwards belong to one window, in which gradients add up.
class [[nodiscard]] backward_window {
 public:
  backward_window(std::shared_ptr<engine::leaf_gradients> of, bool last, std::optional<double> weight)
      : of_(std::move(of)) {
    of_->open_passes(last, weight);
  }
  ~backward_window() { of_->close_passes(); }
  backward_window(const backward_window&) = delete;
  backward_window& operator=(const backward_window&) = delete;

 private:
  std::shared_ptr<engine::leaf_gradients> of_;
};

}  // namespace tessera::nn
