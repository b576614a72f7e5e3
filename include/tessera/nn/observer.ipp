#pragma once

#include <tessera/nn/observer.hpp>

#include <ATen/SequenceNumber.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/function.h>

#include <set>
#include <utility>

namespace tessera::nn {

/// Stands before a node of a layer's graph: the worker enters the layer's backward, unless it is there.
class observed_layer::on_the_way final : public torch::autograd::FunctionPreHook {
 public:
  explicit on_the_way(std::shared_ptr<watched> layer) : layer_(std::move(layer)) {}

  torch::autograd::variable_list operator()(const torch::autograd::variable_list& gradients) override {
    const int task = torch::autograd::get_current_graph_task_id();
    if (place& at = here(); at.layer != layer_ || at.task != task) {
      if (at.task != task) torch::autograd::Engine::get_default_engine().queue_callback([] { leave(); });
      leave();
      at = {layer_, task};
      layer_->by->entered({layer_->path, layer_->name, purpose::backward});
    }
    return gradients;
  }
  static void leave() {
    const place was = std::exchange(here(), {});
    if (was.layer) was.layer->by->left({was.layer->path, was.layer->name, purpose::backward});
  }

 private:
  /// In whose backward this worker is, and in which run of it.
  struct place {
    std::shared_ptr<watched> layer;
    int task = -1;
  };
  static place& here() {
    thread_local place at;
    return at;
  }

  std::shared_ptr<watched> layer_;
};

TESSERA_INLINE void observed_layer::enter(const std::shared_ptr<layer_observer>& by, const std::string& path, const char* name, purpose direction) {
  if (direction == purpose::backward) on_the_way::leave();
  direction_ = direction;
  watch_ = std::make_shared<watched>(watched{by, path, name});
  first_ = at::sequence_number::peek();
  by->entered({watch_->path, watch_->name, direction});
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
    node->add_pre_hook(std::make_unique<on_the_way>(watch_));
    for (const torch::autograd::Edge& e : node->next_edges())
      if (e.is_valid()) next.push_back(e.function.get());
  }
}

}  // namespace tessera::nn
