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

/// Stands before a node of which results come: shows their gradients.
class observed_layer::gradients_come final : public torch::autograd::FunctionPreHook {
 public:
  explicit gradients_come(std::shared_ptr<const observed_node> of) : of_(std::move(of)) {}

  /// A result, by its number among those of the node.
  void show(std::size_t place, layer_tensor result) { results_.emplace_back(place, described(std::move(result))); }

  torch::autograd::variable_list operator()(const torch::autograd::variable_list& gradients) override {
    tell(*of_, results_, gradients);
    return gradients;
  }

  using placed = std::vector<std::pair<std::size_t, layer_tensor>>;

  /// A tensor without its memory, which a graph must not keep.
  static layer_tensor described(layer_tensor of) {
    of.local.reset();
    return of;
  }
  static void tell(const observed_node& of, const placed& all, const torch::autograd::variable_list& gradients) {
    const std::shared_ptr<layer_observer> told = *of.by;
    if (!told || !told->sees_tensors()) return;
    for (const auto& [place, which] : all) {
      if (!gradients[place].defined()) continue;
      layer_tensor shown = which;
      shown.local = gradients[place];
      told->gradient({of.path, of.name, purpose::backward}, shown);
    }
  }

 private:
  std::shared_ptr<const observed_node> of_;
  placed results_;
};

/// Stands behind a node whose gradients leave the layer: shows them.
class observed_layer::gradients_go final : public torch::autograd::FunctionPostHook {
 public:
  gradients_go(std::shared_ptr<const observed_node> of, gradients_come::placed all)
      : of_(std::move(of)), all_(std::move(all)) {}

  static bool stands_behind(const torch::autograd::Node& node, const std::shared_ptr<const observed_node>& of) {
    return std::any_of(node.post_hooks().begin(), node.post_hooks().end(), [&](const auto& hook) {
      const auto* const one = dynamic_cast<const gradients_go*>(hook.get());
      return one != nullptr && one->of_ == of;
    });
  }

  torch::autograd::variable_list operator()(const torch::autograd::variable_list& outputs,
                                            const torch::autograd::variable_list&) override {
    gradients_come::tell(*of_, all_, outputs);
    return outputs;
  }

 private:
  std::shared_ptr<const observed_node> of_;
  gradients_come::placed all_;
};

/// The nodes of a graph that a layer made, with what is shown at them.
struct observed_layer::made_nodes {
  std::shared_ptr<const observed_node> of;
  std::uint64_t first;
  const std::vector<layer_tensor>& all;

  bool has(const torch::autograd::Node& node) const {
    return !node.next_edges().empty() && node.sequence_nr() >= first;
  }

  /// What lies behind the edges by which gradients leave the layer at a node.
  gradients_come::placed leaving(const torch::autograd::Node& node) const {
    gradients_come::placed found;
    for (std::size_t i = 0; i < node.next_edges().size(); ++i) {
      const torch::autograd::Edge& e = node.next_edge(i);
      for (const layer_tensor& t : all)
        if (e.is_valid() && t.is != layer_tensor::result && t.local.defined() && t.local.requires_grad() &&
            torch::autograd::impl::gradient_edge(t.local) == e) {
          found.emplace_back(i, gradients_come::described(t));
          break;
        }
    }
    return found;
  }

  /// Hooks before the nodes of results, but those that several forwards have: they would count twice.
  void follow_results() const {
    std::vector<std::pair<torch::autograd::Node*, std::unique_ptr<gradients_come>>> hooks;
    for (const layer_tensor& t : all) {
      if (t.is != layer_tensor::result || !t.local.defined() || !t.local.grad_fn()) continue;
      torch::autograd::Node* const node = t.local.grad_fn().get();
      if (!has(*node) || tessera::detail::change_backward::lasts(*node)) continue;
      auto at = std::find_if(hooks.begin(), hooks.end(), [&](const auto& one) { return one.first == node; });
      if (at == hooks.end()) at = hooks.insert(at, {node, std::make_unique<gradients_come>(of)});
      at->second->show(static_cast<std::size_t>(t.local.output_nr()), t);
    }
    for (auto& [node, hook] : hooks) node->add_pre_hook(std::move(hook));
  }
};

TESSERA_INLINE void observed_layer::follow(const std::vector<at::Tensor>& results,
                                           const std::vector<layer_tensor>& all) const {
  if (!all.empty()) observer_->computed({node_->path, node_->name, direction_}, all);
  const made_nodes made{node_, first_, all};
  std::set<torch::autograd::Node*> seen;
  std::vector<torch::autograd::Node*> next;
  for (const at::Tensor& y : results)
    if (y.defined() && y.grad_fn()) next.push_back(y.grad_fn().get());
  while (!next.empty()) {
    torch::autograd::Node* const node = next.back();
    next.pop_back();
    if (!made.has(*node) || !seen.insert(node).second) continue;
    const bool lasts = tessera::detail::change_backward::lasts(*node);  // a parameter's, which later forwards have too
    if (!all.empty() && !(lasts && gradients_go::stands_behind(*node, node_)))
      if (gradients_come::placed found = made.leaving(*node); !found.empty())
        node->add_post_hook(std::make_unique<gradients_go>(node_, std::move(found)));
    if (lasts && on_the_way::stands_before(*node, node_)) continue;
    node->add_pre_hook(std::make_unique<on_the_way>(node_, lasts ? std::nullopt : std::optional(first_)));
    for (const torch::autograd::Edge& e : node->next_edges())
      if (e.is_valid()) next.push_back(e.function.get());
  }
  made.follow_results();
}

}  // namespace tessera::nn::engine
