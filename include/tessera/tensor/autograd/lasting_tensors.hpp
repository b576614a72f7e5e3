#pragma once

#include <c10/core/GradMode.h>
#include <c10/core/InferenceMode.h>

#include <optional>

namespace tessera::detail {

/// While it lives, tensors are made without a graph, and later calls may save them for theirs. LibTorch's inference
/// mode makes tensors that no graph may save.
class lasting_tensors {
 public:
  lasting_tensors() {
    if (c10::InferenceMode::is_enabled()) usual_.emplace(false);
    no_graph_.emplace(false);
  }

 private:
  std::optional<c10::InferenceMode> usual_;
  std::optional<c10::AutoGradMode> no_graph_;  // behind the mode, which sets it too
};

}  // namespace tessera::detail
