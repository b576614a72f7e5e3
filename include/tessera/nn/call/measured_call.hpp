#pragma once

#include <tessera/tensor/tensor.hpp>

#include <algorithm>
#include <vector>

namespace tessera::nn {

namespace engine {

using tessera::engine::shared_layout_handle;

}  // namespace engine

/// What a layer sees when data give an extent of its results: its operands on this worker, and where they lie.
struct measured_call {
  const team_handle& team;
  const std::vector<engine::shared_layout_handle>& where;  ///< of the operands
  const std::vector<at::Tensor>& operands;                 ///< this worker's boxes
  const tessera::engine::crew& workers;                    ///< those who run the layer

  /// The largest of what all workers say that run the layer.
  index_t most(index_t mine) const {
    const auto all = team->collect(workers, {static_cast<std::uint64_t>(mine)}, "comparing extents");
    return static_cast<index_t>(*std::max_element(all.begin(), all.end()));
  }
};

}  // namespace tessera::nn
