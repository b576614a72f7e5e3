#pragma once

#include <tessera/nn/call/call.hpp>

#include <algorithm>
#include <vector>

namespace tessera::nn {

namespace engine {

using tessera::engine::shared_layout_handle;

/// The extents that data give a layer's results: one for all that its plan leaves open, or another one for those with
/// the name `second_open`.
struct open_extents {
  index_t first = 0;
  index_t second = 0;

  open_extents(index_t n) : first(n), second(n) {}
  open_extents(index_t n, index_t other) : first(n), second(other) {}

  friend bool operator==(const open_extents&, const open_extents&) = default;
};

}  // namespace engine

/// What a layer sees when data give an extent of its results: its operands on this worker, and where they lie.
struct measured_call {
  const team_handle& team;
  const std::vector<engine::shared_layout_handle>& where;  ///< of the operands
  const std::vector<at::Tensor>& operands;                 ///< this worker's boxes
  const tessera::engine::crew& workers;                    ///< those who run the layer
  const engine::layer_state& state;                        ///< of the layer, which forward assigns
  bool training = true;

  /// The largest of what all workers say that run the layer.
  index_t most(index_t mine) const { return most(engine::open_extents(mine)).first; }
  engine::open_extents most(const engine::open_extents& mine) const {
    if (!workers.has(team->rank())) return mine;  // it holds none of it
    const std::vector<std::uint64_t> all =
        team->collect(workers, {static_cast<std::uint64_t>(mine.first), static_cast<std::uint64_t>(mine.second)},
                      "comparing extents");
    engine::open_extents largest{0};
    for (std::size_t i = 0; i < all.size(); i += 2) {
      largest.first = std::max(largest.first, static_cast<index_t>(all[i]));
      largest.second = std::max(largest.second, static_cast<index_t>(all[i + 1]));
    }
    return largest;
  }
};

}  // namespace tessera::nn
