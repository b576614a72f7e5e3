#pragma once

#include <tessera/comm/exchange/exchange_plan.hpp>
#include <tessera/topology/check_layout.hpp>

#include <memory>
#include <vector>

namespace tessera::engine {

/// A layout as the tensors of a team share it: with the lists that it names, and with what it means for this worker.
class shared_layout {
 public:
  shared_layout(const tessera::layout& of, int rank, int world);
  shared_layout(const shared_layout&) = delete;
  shared_layout& operator=(const shared_layout&) = delete;

  const tessera::layout& layout() const { return layout_; }
  const box_vector& extents() const { return extents_; }  ///< of this worker's box
  const refusal& why() const { return why_; }             ///< what is wrong with the layout; then it has no extents

 private:
  tessera::layout layout_;
  std::vector<int> ranks_;
  std::vector<std::vector<index_t>> bounds_;
  box_vector extents_;
  refusal why_;
};

/// A layout of a team as those share it who need it.
using shared_layout_handle = std::shared_ptr<const shared_layout>;

}  // namespace tessera::engine

#ifndef TESSERA_COMPILED
#include <tessera/comm/exchange/shared_layout_impl.hpp>
#endif
