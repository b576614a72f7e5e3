#pragma once

#include <tessera/comm/base/call_context.hpp>
#include <tessera/comm/base/header_or_compiled.hpp>
#include <tessera/comm/exchange/shared_layout.hpp>

#include <ATen/core/Tensor.h>

#include <memory>
#include <span>
#include <string>
#include <vector>

namespace tessera::nn {

/// A visit of a worker to a layer: forward, or the backward of it.
struct layer_visit {
  const std::string& path;  ///< "encoder.2", in the keys of the serial model; of what it has not, that of its scope
  const char* name = nullptr;
  purpose direction = purpose::forward;
};

/// A tensor that a layer took or gave, or the gradient of it, as this worker holds it.
struct layer_tensor {
  enum role : signed char { operand, parameter, result };

  role is = result;
  int number = 0;    ///< among those of its role
  std::string name;  ///< of a parameter: its path, "0.weight"
  std::shared_ptr<const engine::shared_layout> where;
  at::Tensor local;

  /// How it lies; a gradient lies as the adjoint of that, in the same boxes.
  const tessera::layout& layout() const { return where->layout(); }
};

/// Is told of each layer of a network when this worker enters it and leaves it, forward and backward: `net.observe(…)`.
///
/// Visits are not nested. A backward visit ends where that of another layer begins or backward ends: what happens
/// between two layers counts for the first of them. An observer does not throw: the other workers would wait.
class layer_observer {
 public:
  layer_observer() = default;
  layer_observer(const layer_observer&) = delete;
  layer_observer& operator=(const layer_observer&) = delete;
  virtual ~layer_observer() = default;
  virtual void entered(const layer_visit& visit) = 0;
  virtual void left(const layer_visit& visit) = 0;

  /// Whether it is shown tensors too; else nothing is made ready for that.
  virtual bool sees_tensors() const { return false; }
  /// The layer's operands and results, behind its forward. The visit is a backward one where the layer is recomputed.
  virtual void computed(const layer_visit&, std::span<const layer_tensor>) {}
  /// A gradient, within the visit. Of a result it is the whole gradient; of an operand or a parameter's stored form it
  /// is this layer's term. A parameter held until its gradients are reduced has none here.
  virtual void gradient(const layer_visit&, const layer_tensor&) {}
};

namespace engine {

/// A layer at its place in a network, as graphs keep it: whoever observes the network when they run is told.
struct observed_node {
  std::shared_ptr<const std::shared_ptr<layer_observer>> by;  ///< the network's observer, or null in its place
  std::string path;
  const char* name = nullptr;
};

/// Reports one layer's forward to the observer while it lives, in backward as a part of that, and the backward of its
/// results. Without an observer it does nothing.
class observed_layer {
 public:
  observed_layer(const std::shared_ptr<const observed_node>& node, purpose direction) {
    if (*node->by) enter(node, direction);
  }
  observed_layer(const observed_layer&) = delete;
  observed_layer& operator=(const observed_layer&) = delete;
  ~observed_layer() {
    if (observer_) observer_->left({node_->path, node_->name, direction_});
  }

  /// The layer gave results; `all()` are the tensors that an observer is shown.
  template <class Tensors>
  void gave(const std::vector<at::Tensor>& results, const Tensors& all) {
    if (observer_) follow(results, observer_->sees_tensors() ? all() : std::vector<layer_tensor>());
  }

 private:
  class on_the_way;
  class gradients_come;
  class gradients_go;
  struct made_nodes;

  void enter(const std::shared_ptr<const observed_node>& node, purpose direction);
  void follow(const std::vector<at::Tensor>& results, const std::vector<layer_tensor>& all) const;

  std::shared_ptr<const observed_node> node_;
  std::shared_ptr<layer_observer> observer_;
  purpose direction_ = purpose::forward;  // backward where the layer is recomputed
  std::uint64_t first_ = 0;               // of the graph's nodes that the layer makes
};

}  // namespace engine

}  // namespace tessera::nn

#ifndef TESSERA_COMPILED
#include <tessera/nn/network/observer_impl.hpp>
#endif
