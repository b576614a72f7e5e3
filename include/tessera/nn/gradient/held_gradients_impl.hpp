#pragma once

#include <tessera/nn/gradient/held_gradients.hpp>
#include <tessera/nn/refusals.hpp>
#include <tessera/operation/memory/layer_memory.hpp>
#include <tessera/plan/cutting.hpp>

#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/graph_task.h>

#include <algorithm>
#include <optional>
#include <utility>

namespace tessera::nn::engine {

TESSERA_INLINE held_gradients::held_gradients(const team_handle& team, std::vector<held_member> members,
                                              const tessera::engine::bundle_limits& limits)
    : team_(team), members_(std::move(members)), bundle_of_(members_.size()) {
  struct packed {
    std::vector<std::size_t> members;
    std::vector<gradient_bundle::range> ranges;
    index_t elements = 0;
    unsigned axes = 0;
  };
  std::vector<packed> all;
  tessera::engine::bundle_packer<tessera::engine::bundle_kind, 32> packer(limits);
  std::vector<std::size_t> numbered;  // which of `all` a bundle of the packer is
  for (std::size_t i = members_.size(); i-- > 0;) {
    numbers_.emplace(members_[i].of.get(), i);
    const tensor<dyn>& stored = members_[i].of->stored();
    const layout& lies = stored.layout();
    const unsigned axes = tessera::engine::summed_axes(lies, members_[i].used->layout());
    tessera::engine::bundle_range range;
    if (axes != 0)
      range = packer.add({lies.mesh, axes, stored.type()}, tessera::detail::bytes_held(lies, stored.type()));
    if (range.alone() || range.bundle == static_cast<int>(numbered.size())) {
      if (!range.alone()) numbered.push_back(all.size());
      all.emplace_back();
    }
    packed& to = range.alone() ? all.back() : all[numbered[static_cast<std::size_t>(range.bundle)]];
    to.members.push_back(i);
    to.axes = axes;
    to.ranges.push_back({stored.local().sizes().vec(), to.elements});  // no gaps in what is exchanged
    to.elements += stored.local().numel();
  }
  // Backward comes to what forward took last first; a bundle travels when its last member is there.
  std::sort(all.begin(), all.end(),
            [](const packed& a, const packed& b) { return a.members.back() > b.members.back(); });
  for (packed& one : all) {
    const held_member& first = members_[one.members.front()];
    const layout& stored = first.of->stored().layout();
    const at::ScalarType type = first.of->stored().local().scalar_type();
    coordinates at;
    const bool here = stored.mesh.locate(team_->rank(), at);
    for (const std::size_t m : one.members) bundle_of_[m] = bundles_.size();
    if (one.axes == 0 || !here)
      bundles_.push_back({{team_, cotangent(first.used->layout()), cotangent(stored), type}, one.members, true});
    else
      bundles_.push_back({{team_, tessera::engine::summing_workers(stored.mesh, one.axes, at), std::move(one.ranges),
                           one.elements, type},
                          one.members,
                          true});
    bundles_.back().here = here || one.axes == 0;
  }
}

TESSERA_INLINE void held_gradients::listen(bool reduces, bool last, call_site at) {
  reduces_ = reduces;
  last_ = last;
  at_ = at;
  for (const held_member& one : members_)
    if (reduces || always_) one.of->tell(weak_from_this());
    else one.of->tell({});
}

TESSERA_INLINE void held_gradients::reduce_always(call_site at) {
  always_ = true;
  listen(true, true, at);
}

TESSERA_INLINE void held_gradients::open_window(bool last, bool each, call_site at) {
  if (window_open_) throw error(refusal{code::two_windows}, team_->label());
  window_open_ = true;
  listen(last || each, last, at);
}

TESSERA_INLINE void held_gradients::close_window() {
  window_open_ = false;
  listen(always_, true, at_);
}

TESSERA_INLINE void held_gradients::comes() {
  if (pass_ == torch::autograd::get_current_graph_task_id()) return;
  pass_ = torch::autograd::get_current_graph_task_id();
  if (!reduces_) return;
  missing_.clear();
  for (const travelling& one : bundles_) missing_.push_back(one.members.size());
  begun_ = 0;
  torch::autograd::Engine::get_default_engine().queue_callback([of = weak_from_this()] {
    if (const auto all = of.lock()) all->end_pass();
  });
}

TESSERA_INLINE void held_gradients::came(const held_member& where) {
  if (!reduces_) return;
  const auto [first, end] = numbers_.equal_range(where.of.get());
  const auto one = std::find_if(first, end, [&](const auto& n) { return members_[n.second] == where; });
  if (one == end) return;
  --missing_[bundle_of_[one->second]];
  begin_complete();
}

TESSERA_INLINE void held_gradients::begin_next() {
  travelling& next = bundles_[begun_++];
  std::vector<at::Tensor> terms;
  for (const std::size_t m : next.members) terms.push_back(members_[m].of->take(members_[m].used, members_[m].as));
  if (next.here) next.bundle.begin(terms, at_);
}

TESSERA_INLINE void held_gradients::begin_complete() {
  if (begun_ == bundles_.size() || missing_[begun_] > 0) return;
  const tessera::engine::scoped_context now(*team_,
                                            {.why = purpose::backward, .name = "reducing gradients", .at = at_});
  while (begun_ < bundles_.size() && missing_[begun_] == 0) begin_next();
}

TESSERA_INLINE void held_gradients::end_pass() {
  pass_ = -1;
  finish();
}

TESSERA_INLINE void held_gradients::finish() {
  const tessera::engine::scoped_context now(*team_,
                                            {.why = purpose::backward, .name = "reducing gradients", .at = at_});
  while (begun_ < bundles_.size()) begin_next();
  const at::NoGradGuard no_graph;
  for (travelling& one : bundles_) {
    if (!one.here) continue;
    const std::vector<at::Tensor> sums = one.bundle.finish();
    for (std::size_t m = 0; m < sums.size(); ++m) members_[one.members[m]].of->give(sums[m], last_);
  }
  if (!last_) return;  // the next pass takes what was gathered
  for (const held_member& one : members_) one.of->let_go();
}

TESSERA_INLINE void held_gradients::reduce(call_site at) {
  if (!team_->inside()) return;
  const auto waits = [](const held_member& one) { return one.of->waits(); };
  if (std::any_of(members_.begin(), members_.end(), waits)) {
    at_ = at;
    begun_ = 0;
    last_ = true;
    finish();
  } else {
    for (const held_member& one : members_) one.of->let_go();
  }
}

TESSERA_INLINE std::vector<index_t> held_gradients::bundle_bytes() const {
  std::vector<index_t> all;
  for (const travelling& one : bundles_) all.push_back(one.bundle.bytes());
  return all;
}

}  // namespace tessera::nn::engine
