#pragma once

#include <tessera/nn/gradient/held_gradients.hpp>
#include <tessera/nn/pipeline/pipeline_run.hpp>

namespace tessera::nn::engine {

/// What a batch has, while it is run.
struct pipeline_run::batch {
  bool trains = false;
  bool last = true;
  call_site at;
  std::vector<tensor<dyn>> inputs;
  std::shared_ptr<const executor::bound_program> bound;
  std::vector<at::Tensor> values;   ///< inputs, and what only moves them
  std::vector<at::Tensor> entered;  ///< the same with their graphs, where gradients come back to them
  std::vector<micro_batch> of;
  std::size_t backwards_left = 0;  ///< operations
};

/// What a step with weights gave, and the gradients of that, between the backwards of inputs and of weights.
struct weighted_results {
  std::vector<at::Tensor> y, gradients;
};

/// What a micro-batch has on this worker.
struct pipeline_run::micro_batch {
  double weight = 1;  ///< its share of the rows
  std::shared_ptr<const executor::bound_program> bound;
  std::shared_ptr<const executor::run> steps;
  std::vector<at::Tensor> values;
  std::vector<at::Tensor> came, left;  ///< by crossing: the leaf of the part behind, what the part before gave
  std::vector<at::Tensor> outputs;
  std::vector<std::vector<weighted_results>> weighted;  ///< by part and step of `weighted_`
};

/// The window of one operation backward: the gradients that are held wait for the last one of the last batch.
class pipeline_run::backward_now {
 public:
  backward_now(batch& b, held_gradients* held) : held_(held != nullptr && held->members().empty() ? nullptr : held) {
    if (held == nullptr) return;
    --b.backwards_left;
    if (held_ != nullptr) held_->open_window(b.last && b.backwards_left == 0, false, b.at);
  }
  ~backward_now() {
    if (held_ != nullptr) held_->close_window();
  }
  backward_now(const backward_now&) = delete;
  backward_now& operator=(const backward_now&) = delete;

 private:
  held_gradients* held_;
};

}  // namespace tessera::nn::engine
