#pragma once

#include <tessera/nn/network/observer.hpp>
#include <tessera/tensor/change/change.hpp>

#include <ATen/SequenceNumber.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/function.h>

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

namespace tessera::nn::engine {

/// Stands before a node of a layer's graph: the worker enters the layer's backward, unless it is there.
class observed_layer::on_the_way final : public torch::autograd::FunctionPreHook {
 public:
  /// Of one forward, known by the number of its first node; of any where several forwards have the node.
  on_the_way(std::shared_ptr<const observed_node> of, std::optional<std::uint64_t> forward)
      : of_(std::move(of)), forward_(forward) {}

  /// Whether a node that several forwards have tells of the layer already.
  static bool stands_before(const torch::autograd::Node& node, const std::shared_ptr<const observed_node>& of) {
    return std::any_of(node.pre_hooks().begin(), node.pre_hooks().end(), [&](const auto& hook) {
      const auto* const one = dynamic_cast<const on_the_way*>(hook.get());
      return one != nullptr && one->of_ == of;
    });
  }

  torch::autograd::variable_list operator()(const torch::autograd::variable_list& gradients) override {
    const int task = torch::autograd::get_current_graph_task_id();
    visit& at = here();
    const bool there = at.of == of_ && at.task == task && (!forward_ || !at.forward || *at.forward == *forward_);
    if (there || !*of_->by) return gradients;
    if (at.task != task) torch::autograd::Engine::get_default_engine().queue_callback([] { leave(); });
    leave();
    at = {of_, *of_->by, forward_, task};
    at.told->entered({of_->path, of_->name, purpose::backward});
    return gradients;
  }
  static void leave() {
    const visit was = std::exchange(here(), {});
    if (was.told) was.told->left({was.of->path, was.of->name, purpose::backward});
  }

 private:
  /// In whose backward this worker is, who was told, and in which run of it.
  struct visit {
    std::shared_ptr<const observed_node> of;
    std::shared_ptr<layer_observer> told;
    std::optional<std::uint64_t> forward;
    int task = -1;
  };
  static visit& here() {
    thread_local visit at;
    return at;
  }

  std::shared_ptr<const observed_node> of_;
  std::optional<std::uint64_t> forward_;
};

TESSERA_INLINE void observed_layer::enter(const std::shared_ptr<const observed_node>& node, purpose direction) {
  if (direction == purpose::backward) on_the_way::leave();
  direction_ = direction;
  node_ = node;
  observer_ = *node->by;
  first_ = at::sequence_number::peek();
  observer_->entered({node_->path, node_->name, direction});
}

TESSERA_INLINE void observed_layer::follow(const std::vector<at::Tensor>& results) const {
  std::set<torch::autograd::Node*> seen;
  std::vector<torch::autograd::Node*> next;
  for (const at::Tensor& y : results)
    if (y.defined() && y.grad_fn()) next.push_back(y.grad_fn().get());
  while (!next.empty()) {
    torch::autograd::Node* const node = next.back();
    next.pop_back();
    const bool leaf = node->next_edges().empty();
    if (leaf || node->sequence_nr() < first_ || !seen.insert(node).second) continue;
    const bool lasts = tessera::detail::change_backward::lasts(*node);  // a parameter's, which later forwards have too
    if (lasts && on_the_way::stands_before(*node, node_)) continue;
    node->add_pre_hook(std::make_unique<on_the_way>(node_, lasts ? std::nullopt : std::optional(first_)));
    for (const torch::autograd::Edge& e : node->next_edges())
      if (e.is_valid()) next.push_back(e.function.get());
  }
}

}  // namespace tessera::nn::engine
