#pragma once

#include <tessera/nn/gradient/leaf_gradients.hpp>
#include <tessera/nn/parameter/refusing_gradient.hpp>
#include <tessera/nn/refusals.hpp>

#include <fmt/core.h>
#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/graph_task.h>
#include <torch/csrc/autograd/variable.h>

#include <bit>
#include <unordered_set>
#include <utility>

namespace tessera::nn::engine {

/// Hears that LibTorch has added a leaf's gradient. Who hears outlives it.
class leaf_gradients::arrival final : public torch::autograd::PostAccumulateGradHook {
 public:
  arrival(leaf_gradients& of, std::size_t leaf) : of_(of), leaf_(leaf) {}
  void operator()(const at::Tensor&) override { of_.came(leaf_); }

 private:
  leaf_gradients& of_;
  std::size_t leaf_;
};

/// Whether `autograd::grad` asks for the gradient of a leaf, which then gets none.
inline bool is_asked_for(const at::Tensor& leaf) {
  const auto* const tasks = torch::autograd::get_current_graph_task_exec_info();
  const auto accumulator = torch::autograd::impl::try_get_grad_accumulator(leaf);
  if (tasks == nullptr || accumulator == nullptr) return false;
  const auto found = tasks->find(accumulator.get());
  return found != tasks->end() && found->second.captures_ != nullptr && !found->second.needed_;
}

TESSERA_INLINE leaf_gradients::leaf_gradients(const team_handle& team, std::vector<named_leaf> leaves,
                                              gradient_rule how, const char* doing, call_site at)
    : travelling_bundles(team, doing, at), leaves_(std::move(leaves)), how_(std::move(how)), states_(leaves_.size()) {
  for (std::size_t i = 0; i < leaves_.size(); ++i)
    states_[i].waiting = refusing_gradient(leaves_[i].leaf, refusal{code::stepped_inside_window}, leaves_[i].name);
}

TESSERA_INLINE std::vector<std::vector<std::size_t>> leaf_gradients::pack(
    const std::vector<int>& groups, const std::function<layout(index_t elements)>& sums, bool in_one) {
  using kind = std::pair<at::ScalarType, int>;
  const auto place = [&](auto& packer, std::size_t i) {
    return packer.add({leaves_[i].leaf.scalar_type(), groups.empty() ? 0 : groups[i]},
                      static_cast<index_t>(leaves_[i].leaf.nbytes()));
  };
  std::vector<std::vector<std::size_t>> bundles = packed_backwards<kind, 64>(leaves_.size(), how_.limits, place);
  for (const std::vector<std::size_t>& members : bundles) {
    std::vector<gradient_bundle::range> ranges;
    index_t elements = 0;
    for (const std::size_t i : members) {  // end to end: what is exchanged has no gaps
      ranges.push_back({leaves_[i].leaf.sizes().vec(), elements});
      elements += leaves_[i].leaf.numel();
    }
    const layout all = sums(elements);
    const at::ScalarType type = leaves_[members.front()].leaf.scalar_type();
    add({team(), flat_layout(all.mesh, elements, placement::partial), all, std::move(ranges), type, in_one}, members);
  }
  return bundles;
}

TESSERA_INLINE void leaf_gradients::open_passes(bool last, std::optional<double> weight) {
  if (passes_open_) throw error(refusal{code::two_windows}, team()->label());
  if (weight && !(*weight >= 0)) throw error(refusal{code::weight_below_zero}, fmt::format("{}", *weight));
  passes_open_ = true;
  next_ = {last, weight.value_or(1), weight.has_value()};
}
TESSERA_INLINE void leaf_gradients::close_passes() {
  passes_open_ = false;
  next_ = {};
}

TESSERA_INLINE void leaf_gradients::listen(const reason& twice) {
  std::unordered_set<const c10::TensorImpl*> known;
  for (const named_leaf& one : leaves_)
    if (torch::autograd::impl::post_acc_grad_hooks(one.leaf) || !known.insert(one.leaf.unsafeGetTensorImpl()).second)
      throw error(refusal{twice}, one.name);
  for (std::size_t i = 0; i < leaves_.size(); ++i) {
    const at::Tensor& leaf = leaves_[i].leaf;
    // An undefined one lets the gradient as it is, and unlike itself is not looked at.
    hooks_.push_back(leaf.register_hook([this, i](const at::Tensor& gradient) {
      if (is_asked_for(leaves_[i].leaf)) return at::Tensor();
      comes(i, gradient);
      return weighed(gradient);
    }));
    torch::autograd::impl::set_post_acc_grad_hooks(leaf, std::make_unique<arrival>(*this, i));
  }
}

TESSERA_INLINE leaf_gradients::~leaf_gradients() {
  for (std::size_t i = 0; i < hooks_.size(); ++i) {
    leaves_[i].leaf.remove_hook(hooks_[i]);
    torch::autograd::impl::set_post_acc_grad_hooks(leaves_[i].leaf, nullptr);
  }
}

TESSERA_INLINE void leaf_gradients::comes(std::size_t leaf, const at::Tensor& gradient) {
  if (gradient.defined() && gradient.is_sparse()) throw error(refusal{code::gradient_is_sparse}, leaves_[leaf].name);
  if (at::GradMode::is_enabled()) throw error(refusal{code::gradient_has_graph}, leaves_[leaf].name);
  if (is_first_of_pass()) open_pass();
}

TESSERA_INLINE at::Tensor leaf_gradients::weighed(const at::Tensor& gradient) const {
  if (!gradient.defined() || !next_.weighed || next_.weight == 1) return {};
  // A worker without samples may have a mean of none, which is no number.
  return next_.weight == 0 ? at::zeros_like(gradient) : gradient * next_.weight;
}

TESSERA_INLINE void leaf_gradients::open_pass() {
  if (!open_) {
    open_window();
    for (leaf_state& one : states_) one.came = false;
    weight_ = 0;
    weighed_ = false;
    open_ = true;
  } else {
    take_up();
    go_on();
  }
  weight_ += next_.weight;
  weighed_ = weighed_ || next_.weighed;
  begin_pass();
}

TESSERA_INLINE void leaf_gradients::came(std::size_t leaf) {
  states_[leaf].came = true;
  count(leaf);
  if (reduces()) begin_complete();
}

/// A backward that was not the last of its window is over: leaves have no gradient that could be stepped.
TESSERA_INLINE void leaf_gradients::set_aside() {
  for (std::size_t i = 0; i < leaves_.size(); ++i) states_[i].terms = std::exchange(gradient_of(i), states_[i].waiting);
}

/// Another one begins: leaves have their terms again, but those whose gradients somebody let go.
TESSERA_INLINE void leaf_gradients::take_up() {
  for (std::size_t i = 0; i < leaves_.size(); ++i) {
    at::Tensor& gradient = gradient_of(i);
    leaf_state& mine = states_[i];
    if (gradient.is_same(mine.waiting)) gradient = mine.terms;
    else let_go(i);
    mine.terms.reset();
    mine.came = gradient.defined();
  }
}

TESSERA_INLINE void leaf_gradients::forget(std::size_t leaf) {
  gradient_of(leaf).reset();
  states_[leaf].came = false;
}

/// A leaf's gradient is gone until its sums are there.
TESSERA_INLINE at::Tensor leaf_gradients::take(std::size_t leaf) {
  at::Tensor mine = std::exchange(gradient_of(leaf), {});
  return std::exchange(states_[leaf].came, false) ? mine : at::Tensor();
}

TESSERA_INLINE void leaf_gradients::end_pass() {
  if (reduces()) begin_rest();
  const double by = next_.last ? factor() : 1;
  if (reduces()) end_all(given_times(by));
  if (!next_.last) {
    set_aside();
    interrupt();
    return;
  }
  open_ = false;
  close_window(by);
  if (behind_) behind_();
}

/// By what sums are multiplied: one over all weights, which workers tell each other where some were said.
TESSERA_INLINE double leaf_gradients::factor() {
  if (!how_.averages) return 1;
  if (!weighed_) return 1.0 / team()->size();
  const tessera::engine::scoped_context now(*team(), doing());
  double sum = 0;
  for (const std::uint64_t one : team()->collect(std::bit_cast<std::uint64_t>(weight_), "adding weights"))
    sum += std::bit_cast<double>(one);
  return sum > 0 ? 1 / sum : 0;
}

}  // namespace tessera::nn::engine
