#pragma once

#include <tessera/comm/activity.hpp>
#include <tessera/comm/form.hpp>

#include <ATen/core/Tensor.h>

#include <memory>
#include <string>
#include <vector>

namespace tessera::nn {

/// A visit of a worker to a layer: forward, or the backward of it.
struct layer_visit {
  const std::string& path;  ///< "encoder.2", in the keys of the serial model; of what it has not, that of its scope
  const char* name = nullptr;
  purpose direction = purpose::forward;
};

/// Is told of each layer of a network when this worker enters it and leaves it, forward and backward: `net.observe(…)`.
///
/// Visits are not nested. A backward visit ends where that of another layer begins or backward ends: what happens between two layers counts
/// for the first of them.
class layer_observer {
 public:
  layer_observer() = default;
  layer_observer(const layer_observer&) = delete;
  layer_observer& operator=(const layer_observer&) = delete;
  virtual ~layer_observer() = default;
  virtual void entered(const layer_visit& visit) = 0;
  virtual void left(const layer_visit& visit) = 0;
};

/// Tells an observer of one layer's forward while it lives, which in backward is a part of that, and of the backward of what it gives; nobody is told where there is none.
class observed_layer {
 public:
  observed_layer(const std::shared_ptr<layer_observer>& by, const std::string& path, const char* name, purpose direction) {
    if (by) enter(by, path, name, direction);
  }
  observed_layer(const observed_layer&) = delete;
  observed_layer& operator=(const observed_layer&) = delete;
  ~observed_layer() {
    if (watch_) watch_->by->left({watch_->path, watch_->name, direction_});
  }

  void gave(const std::vector<at::Tensor>& results) {
    if (watch_) follow(results);
  }

 private:
  /// What the graph of a layer keeps, to tell of it.
  struct watched {
    std::shared_ptr<layer_observer> by;
    std::string path;
    const char* name = nullptr;
  };
  class on_the_way;

  void enter(const std::shared_ptr<layer_observer>& by, const std::string& path, const char* name, purpose direction);
  void follow(const std::vector<at::Tensor>& results) const;

  std::shared_ptr<watched> watch_;
  purpose direction_ = purpose::forward;  // backward where the layer is recomputed
  std::uint64_t first_ = 0;  // of the graph's nodes that the layer makes
};

}  // namespace tessera::nn

#ifndef TESSERA_COMPILED
#include <tessera/nn/observer.ipp>
#endif
