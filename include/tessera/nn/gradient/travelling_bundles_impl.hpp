#pragma once

#include <tessera/nn/gradient/travelling_bundles.hpp>

#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/graph_task.h>

#include <utility>

namespace tessera::nn::engine {

TESSERA_INLINE void travelling_bundles::add(gradient_bundle bundle, std::vector<std::size_t> members, bool here) {
  for (const std::size_t m : members) {
    if (bundle_of_.size() <= m) bundle_of_.resize(m + 1);
    bundle_of_[m] = bundles_.size();
  }
  bundles_.push_back({std::move(bundle), std::move(members), here});
}

TESSERA_INLINE bool travelling_bundles::is_first_of_pass() {
  const int now = torch::autograd::get_current_graph_task_id();
  return std::exchange(pass_, now) != now;
}

TESSERA_INLINE void travelling_bundles::begin_pass() {
  for (travelling& one : bundles_) one.missing = one.members.size();
  begun_ = 0;
  torch::autograd::Engine::get_default_engine().queue_callback([of = weak_from_this()] {
    const auto all = of.lock();
    if (!all) return;
    all->pass_ = -1;
    all->end_pass();
  });
}

TESSERA_INLINE void travelling_bundles::begin_next() {
  travelling& next = bundles_[begun_++];
  tessera::engine::fingerprint learning;
  for (const std::size_t m : next.members) {
    terms_.push_back(take(m));
    learning << static_cast<int>(learns(m));
  }
  if (next.here) next.bundle.begin(std::exchange(terms_, {}), learning.value(), at_);
  terms_.clear();
}

TESSERA_INLINE void travelling_bundles::begin_complete() {
  if (begun_ == bundles_.size() || bundles_[begun_].missing > 0) return;
  const tessera::engine::scoped_context now(*team_, doing());
  while (begun_ < bundles_.size() && bundles_[begun_].missing == 0) begin_next();
}

TESSERA_INLINE void travelling_bundles::begin_rest() {
  const tessera::engine::scoped_context now(*team_, doing());
  while (begun_ < bundles_.size()) begin_next();
}

TESSERA_INLINE void travelling_bundles::end_all(double factor) {
  const tessera::engine::scoped_context now(*team_, doing());
  const at::NoGradGuard no_graph;
  for (travelling& one : bundles_)
    if (one.here) give(one.members, one.bundle.finish(factor));
}

TESSERA_INLINE std::vector<index_t> travelling_bundles::bundle_bytes() const {
  std::vector<index_t> all;
  for (const travelling& one : bundles_) all.push_back(one.bundle.bytes());
  return all;
}

}  // namespace tessera::nn::engine
