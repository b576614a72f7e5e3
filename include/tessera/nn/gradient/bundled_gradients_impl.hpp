#pragma once

#include <tessera/nn/gradient/bundled_gradients.hpp>
#include <tessera/nn/parameter/refusing_gradient.hpp>
#include <tessera/nn/refusals.hpp>

#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/graph_task.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <bit>
#include <utility>

namespace tessera::nn::engine {

/// Hears that LibTorch has added a leaf's gradient.
class bundled_gradients::arrival final : public torch::autograd::PostAccumulateGradHook {
 public:
  arrival(std::weak_ptr<bundled_gradients> of, std::size_t leaf) : of_(std::move(of)), leaf_(leaf) {}
  void operator()(const at::Tensor&) override {
    if (const auto all = of_.lock()) all->came(leaf_);
  }

 private:
  std::weak_ptr<bundled_gradients> of_;
  std::size_t leaf_;
};

TESSERA_INLINE bundled_gradients::bundled_gradients(const team_handle& team, std::vector<named_leaf> leaves,
                                                    const rule& how, call_site at)
    : team_(team), leaves_(std::move(leaves)), how_(how), at_(at), bundle_of_(leaves_.size()), states_(leaves_.size()) {
  struct packed {
    std::vector<std::size_t> leaves;
    std::vector<gradient_bundle::range> ranges;
    index_t elements = 0;
  };
  std::vector<packed> all;
  tessera::engine::bundle_packer<at::ScalarType, 16> packer(how_.limits);
  std::vector<std::size_t> numbered;  // which of `all` a bundle of the packer is
  for (std::size_t i = leaves_.size(); i-- > 0;) {
    const at::Tensor& leaf = leaves_[i].leaf;
    const auto size = static_cast<index_t>(leaf.element_size());
    const tessera::engine::bundle_range lies = packer.add(leaf.scalar_type(), leaf.numel() * size);
    if (lies.alone() || lies.bundle == static_cast<int>(numbered.size())) {
      if (!lies.alone()) numbered.push_back(all.size());
      all.emplace_back();
    }
    packed& to = lies.alone() ? all.back() : all[numbered[static_cast<std::size_t>(lies.bundle)]];
    to.leaves.push_back(i);
    to.ranges.push_back({leaf.sizes().vec(), lies.begin / size});
    to.elements = lies.begin / size + leaf.numel();
    states_[i].waiting = refusing_gradient(leaf, refusal{code::stepped_inside_window}, leaves_[i].name);
  }
  // Backward comes to the last leaf first; a bundle travels when its last member is there.
  std::sort(all.begin(), all.end(), [](const packed& a, const packed& b) { return a.leaves.back() > b.leaves.back(); });
  for (packed& one : all) {
    for (const std::size_t leaf : one.leaves) bundle_of_[leaf] = bundles_.size();
    bundles_.emplace_back(team_, team_->mesh(), std::move(one.ranges), one.elements,
                          leaves_[one.leaves.front()].leaf.scalar_type());
    members_.push_back(std::move(one.leaves));
  }
}

TESSERA_INLINE void bundled_gradients::listen() {
  for (const named_leaf& one : leaves_)
    if (torch::autograd::impl::post_acc_grad_hooks(one.leaf))
      throw error(refusal{code::gradients_bundled_twice}, one.name);
  for (std::size_t i = 0; i < leaves_.size(); ++i) {
    const at::Tensor& leaf = leaves_[i].leaf;
    hooks_.push_back(leaf.register_hook([of = weak_from_this(), i](const at::Tensor& gradient) {
      const auto all = of.lock();
      return all ? all->comes(i, gradient) : gradient;
    }));
    torch::autograd::impl::set_post_acc_grad_hooks(leaf, std::make_unique<arrival>(weak_from_this(), i));
  }
}

TESSERA_INLINE bundled_gradients::~bundled_gradients() {
  for (std::size_t i = 0; i < hooks_.size(); ++i) {
    leaves_[i].leaf.remove_hook(hooks_[i]);
    torch::autograd::impl::set_post_acc_grad_hooks(leaves_[i].leaf, nullptr);
  }
}

TESSERA_INLINE at::Tensor bundled_gradients::comes(std::size_t leaf, const at::Tensor& gradient) {
  if (gradient.defined() && gradient.is_sparse()) throw error(refusal{code::gradient_is_sparse}, leaves_[leaf].name);
  if (at::GradMode::is_enabled()) throw error(refusal{code::gradient_has_graph}, leaves_[leaf].name);
  if (pass_ != torch::autograd::get_current_graph_task_id()) begin_pass();
  if (!gradient.defined() || !next_.weighed || next_.weight == 1) return gradient;
  // A worker without samples may have a mean of none, which is no number.
  return next_.weight == 0 ? at::zeros_like(gradient) : gradient * next_.weight;
}

TESSERA_INLINE void bundled_gradients::open_window() {
  for (std::size_t i = 0; i < leaves_.size(); ++i) {
    states_[i].before = std::exchange(leaves_[i].leaf.mutable_grad(), {});
    states_[i].came = false;
  }
}

/// A backward that was not the last of its window is over: leaves have no gradient that could be stepped.
TESSERA_INLINE void bundled_gradients::set_aside() {
  for (std::size_t i = 0; i < leaves_.size(); ++i)
    states_[i].terms = std::exchange(leaves_[i].leaf.mutable_grad(), states_[i].waiting);
}

/// Another one begins: leaves have their terms again, but those whose gradients somebody let go.
TESSERA_INLINE void bundled_gradients::take_up() {
  for (std::size_t i = 0; i < leaves_.size(); ++i) {
    at::Tensor& gradient = leaves_[i].leaf.mutable_grad();
    leaf_state& mine = states_[i];
    if (gradient.is_same(mine.waiting)) gradient = mine.terms;
    mine.terms.reset();
    mine.came = gradient.defined();
  }
}

TESSERA_INLINE void bundled_gradients::begin_pass() {
  pass_ = torch::autograd::get_current_graph_task_id();
  if (!open_) {
    open_window();
    weight_ = 0;
    weighed_ = false;
    open_ = true;
  } else {
    take_up();
  }
  weight_ += next_.weight;
  weighed_ = weighed_ || next_.weighed;
  missing_.clear();
  for (const gradient_bundle& one : bundles_) missing_.push_back(one.count());
  begun_ = 0;
  torch::autograd::Engine::get_default_engine().queue_callback([of = weak_from_this()] {
    if (const auto all = of.lock()) all->end_pass();
  });
}

TESSERA_INLINE void bundled_gradients::came(std::size_t leaf) {
  states_[leaf].came = true;
  --missing_[bundle_of_[leaf]];
  if (next_.last) begin_complete();
}

/// The next bundle begins to travel, and its leaves' gradients are gone until its sums are there.
TESSERA_INLINE void bundled_gradients::begin_next() {
  std::vector<at::Tensor> terms;
  for (const std::size_t leaf : members_[begun_]) {
    at::Tensor mine = std::exchange(leaves_[leaf].leaf.mutable_grad(), {});
    terms.push_back(states_[leaf].came ? std::move(mine) : at::Tensor());
  }
  bundles_[begun_++].begin(terms, at_);
}

TESSERA_INLINE void bundled_gradients::begin_complete() {
  if (begun_ == bundles_.size() || missing_[begun_] > 0) return;
  const tessera::engine::scoped_context now(*team_,
                                            {.why = purpose::backward, .name = "averaging gradients", .at = at_});
  while (begun_ < bundles_.size() && missing_[begun_] == 0) begin_next();
}

TESSERA_INLINE void bundled_gradients::end_pass() {
  pass_ = -1;
  if (!next_.last) {
    set_aside();
    return;
  }
  const tessera::engine::scoped_context now(*team_,
                                            {.why = purpose::backward, .name = "averaging gradients", .at = at_});
  while (begun_ < bundles_.size()) begin_next();
  const double by = factor();
  const at::NoGradGuard no_graph;
  for (std::size_t b = 0; b < bundles_.size(); ++b) {
    std::vector<at::Tensor> sums = bundles_[b].finish(by);
    for (std::size_t m = 0; m < sums.size(); ++m) {
      leaf_state& mine = states_[members_[b][m]];
      if (mine.before.defined()) sums[m].add_(std::exchange(mine.before, {}));
      leaves_[members_[b][m]].leaf.mutable_grad() = std::move(sums[m]);
    }
  }
  open_ = false;
  if (how_.behind) how_.behind();
}

/// By what sums are multiplied: one over all weights, which workers tell each other where some were said.
TESSERA_INLINE double bundled_gradients::factor() {
  if (!how_.averages) return 1;
  if (!weighed_) return 1.0 / team_->size();
  double sum = 0;
  for (const std::uint64_t one : team_->collect(std::bit_cast<std::uint64_t>(weight_), "adding weights"))
    sum += std::bit_cast<double>(one);
  return sum > 0 ? 1 / sum : 0;
}

}  // namespace tessera::nn::engine
