#pragma once

#include <tessera/nn/gradient/held_gradients.hpp>
#include <tessera/nn/network/executor.hpp>
#include <tessera/nn/pipeline/micro_batch_rows.hpp>
#include <tessera/nn/pipeline/stage_map.hpp>
#include <tessera/nn/pipeline/weight_roots.hpp>
#include <tessera/plan/schedule/schedule_run.hpp>
#include <tessera/plan/schedule/stages.hpp>
#include <tessera/plan/schedule/timeline.hpp>
#include <tessera/tensor/change/running_change.hpp>

#include <deque>
#include <functional>
#include <string>

namespace tessera::nn {

/// Which pass of a stage a function of one's own sees to.
struct stage_pass {
  int stage = 0;
  int chunk = 0;
  int micro_batch = 0;
};

namespace engine {

/// A forward of one's own: what leaves a part of the network, of what comes to it. `run` is what its own nodes do.
///
/// These are boxes of this worker, as large as the program says. There come values of other parts in the order of the
/// moves, then inputs that the part reads. There leave values for other parts, then the outputs that it makes.
using own_forward = std::function<std::vector<at::Tensor>(
    const stage_pass& pass, const std::vector<at::Tensor>& came,
    const std::function<std::vector<at::Tensor>(const std::vector<at::Tensor>&)>& run)>;
/// A backward of one's own: what forward gave, and the gradients of that. Without one it is LibTorch's.
using own_backward = std::function<void(const stage_pass& pass, const std::vector<at::Tensor>& given,
                                        const std::vector<at::Tensor>& gradients)>;
/// What steps the parameters of a stage, behind its last backward of a batch.
using own_step = std::function<void(const stage_pass& pass)>;

}  // namespace engine

/// How a network is run in a pipeline.
struct pipeline_options {
  pipeline::micro_batch_sizes rows = pipeline::micro_batch_sizes::equal;  ///< whether they may differ by one
  bool loss_is_mean = true;  ///< the loss of a batch is the mean over its rows, else their sum
  /// inputs that are no rows of a batch: each micro-batch has them whole
  std::vector<std::size_t> whole_inputs{};
  engine::own_forward forward{};  ///< of each part, in place of its nodes; backwards of weights are then not apart
  engine::own_backward backward{};
  /// for the steps of a schedule: it is called behind the last batch's backwards of each stage, on each of its workers
  engine::own_step step{};
};

namespace engine {

/// A network that stages run by a schedule. Each worker runs the operations of its stage in their order.
///
/// What goes to another stage is begun where it is made, and ended when an answer says that it was taken. What comes is
/// begun and ended where it is needed. So a worker waits for what an operation needs, and for nothing else.
class pipeline_run {
 public:
  using operations = std::vector<std::vector<pipeline::operation>>;

  /// Of a network with these inputs, and a schedule that was proved, by stage.
  pipeline_run(const executor& net, std::vector<tensor_value> inputs, std::string_view axis, const pipeline::extent& of,
               operations all, pipeline_options options);
  pipeline_run(const pipeline_run&) = delete;
  pipeline_run& operator=(const pipeline_run&) = delete;

  /// The outputs of the whole batch. Where it trains, gradients are added to the parameters'; behind the `last` batch
  /// before a step those that are held are summed over workers.
  std::vector<tensor<dyn>> run(std::span<const tensor<dyn>> inputs, bool trains, bool last, call_site at);

  const stage_map& stages() const { return map_; }

  /// The operations of each stage in the last batch, as its first worker ran them; all workers ask together.
  std::vector<std::vector<pipeline::timed_operation>> timeline() const;

 private:
  struct batch;
  struct micro_batch;
  struct returned;
  class backward_now;
  /// What another stage takes behind an operation of its list.
  struct sent {
    int stage;
    std::size_t taken_at;
    std::shared_ptr<tessera::engine::bound_change> change;
    std::unique_ptr<tessera::engine::running_change> goes;
  };

  /// A parameter that is stored on one stage and taken on another: by this pipeline, and by the network.
  struct tied_parameter {
    parameter taken, known;
    const char* name;  ///< which outlives it: changes are kept by it
  };

  executor::state& my() const { return *net_.state_; }
  std::size_t place_of(int part, pipeline::work does, int m) const;
  std::size_t number_of(const crossing& c) const { return static_cast<std::size_t>(&c - map_.crossings.data()); }
  /// The value of a stage of which an output is made.
  std::size_t output_of(std::size_t k) const;
  bool has_gradient(const batch& b, const crossing& c) const;
  tessera::engine::call_context context_of(const batch& b, const crossing& c, bool back) const;
  std::shared_ptr<tessera::engine::bound_change> change_of(const micro_batch& m, const crossing& c, bool back,
                                                           const tessera::engine::call_context& now) const;

  /// The step that makes a value.
  std::size_t maker_of(std::size_t v) const;
  std::optional<micro_batch_rows> rows_taken(const batch& b, std::size_t v, int m) const;
  at::Tensor joined(const batch& b, std::size_t k) const;

  /// Takes parameters as this pipeline's steps do: those stored on another stage are held.
  void take_states();
  /// Brings those where they are taken, once before all micro-batches; lets them go.
  void bring_tied(call_site at) const;
  void let_go_tied() const;
  /// Brings the sums of their gradients back, once behind all micro-batches. A stage waits for those that it stores;
  /// others have been sent, and end later.
  void return_tied(batch& b);
  std::shared_ptr<tessera::engine::bound_change> return_of(const tied_parameter& p,
                                                           const tessera::engine::call_context& now) const;
  static bool is_learned(const parameter& p) { return !p.frozen() && p.stored().local().requires_grad(); }
  bool stores(const tied_parameter& p) const { return stage_ == stage_of(p.known.stored().layout(), axis_); }
  static tessera::engine::call_context context_of_return(const batch& b, const tied_parameter& p);

  batch begin(std::span<const tensor<dyn>> inputs, bool trains, call_site at);
  void enter(batch& b) const;
  void cut(batch& b) const;
  rows_join join_of_output(const batch& b, std::size_t v) const;
  void bind(batch& b) const;
  void forward(batch& b, const pipeline::operation& x);
  /// The nodes of a part, which send what they make as soon as it is there; or a function of one's own.
  void run_nodes(batch& b, const pipeline::operation& x, int part);
  void run_own(batch& b, const pipeline::operation& x, int part);
  /// Makes a value that came one of which a gradient is asked.
  void take(batch& b, micro_batch& now, const crossing& c, const at::Tensor& y) const;
  void backward(batch& b, const pipeline::operation& x);
  void backward_of_inputs(const batch& b, micro_batch& now, int part, const std::vector<at::Tensor>& from,
                          const std::vector<at::Tensor>& gradients) const;
  void backward_of_weights(batch& b, const pipeline::operation& x) const;
  void step(batch& b, const pipeline::operation& x);
  /// Makes the gradients of this stage's parameters those of the batch: sums what is held, and takes home what others
  /// have.
  void complete_gradients(batch& b);
  weight_roots roots_of(std::size_t step, std::uint64_t since, const std::vector<at::Tensor>& values) const;
  /// The steps of a part whose weights have a backward of their own; none where it is taken whole.
  std::vector<std::size_t> steps_with_weights(int part) const;
  std::vector<tensor<dyn>> leave(batch& b) const;

  void send(const batch& b, const crossing& c, const at::Tensor& x, const pipeline::operation& of, bool back);
  at::Tensor receive(const batch& b, const crossing& c, const pipeline::operation& of, bool back);
  /// Ends what a stage has taken before a place of its list; all without one.
  void end_taken(int stage, std::size_t before);

  executor net_;  ///< that shares the network's state
  std::vector<tensor_value> inputs_;
  int axis_;
  pipeline::extent of_;
  operations operations_;
  pipeline_options options_;
  stage_map map_;
  std::vector<const crossing*> crossed_;            ///< by node
  std::vector<const char*> names_;                  ///< of crossings, in messages
  std::vector<std::vector<std::size_t>> weighted_;  ///< by part: `steps_with_weights`, where backwards are apart
  int stage_ = -1;                                  ///< this worker's, or none
  std::vector<layer_state> states_;                 ///< of each step
  std::vector<tied_parameter> tied_;                ///< those of `states_` that are stored on another stage
  std::deque<sent> under_way_;
  std::vector<pipeline::timed_operation> times_;  ///< of this worker's last batch
  double waited_ = 0;                             ///< for other stages, in the operation that runs
};

/// What a batch has, while it is run.
struct pipeline_run::batch {
  bool trains = false;
  bool last = true;
  call_site at;
  std::vector<tensor<dyn>> inputs;
  std::shared_ptr<const bound_program> bound;
  std::optional<layout> rows;       ///< how those lie that are cut into micro-batches
  std::vector<rows_join> joins;     ///< of each output
  std::vector<at::Tensor> values;   ///< inputs, and what only moves them
  std::vector<at::Tensor> entered;  ///< the same with their graphs, where gradients come back to them
  std::vector<micro_batch> of;
  std::size_t backwards_left = 0;  ///< operations behind the one that runs
  std::vector<returned> tied;      ///< on their way home
  bool complete = false;           ///< the gradients of this stage
};

/// The gradient of a parameter of another stage, on its way there.
struct pipeline_run::returned {
  const tied_parameter* of;
  std::shared_ptr<tessera::engine::bound_change> change;
  std::unique_ptr<tessera::engine::running_change> goes;
};

/// What a micro-batch has on this worker.
struct pipeline_run::micro_batch {
  double weight = 1;  ///< its share of the rows
  std::optional<micro_batch_rows> rows;
  std::shared_ptr<const bound_program> bound;
  std::shared_ptr<const executor::run> steps;
  std::vector<at::Tensor> values;
  std::vector<at::Tensor> came, left;  ///< by crossing: the leaf of the part behind, what the part before gave
  std::vector<at::Tensor> outputs;
  std::vector<std::vector<weight_roots>> weighted;  ///< by part and step of `weighted_`
};

/// The window of one call of autograd's engine: gradients that are held wait for the last call of the last batch.
class pipeline_run::backward_now {
 public:
  backward_now(const pipeline_run& of, const batch& b, bool last_of_operation = true) {
    const auto& held = of.net_.held_gradients();
    if (held->members().empty()) return;
    held_ = held.get();
    held_->open_window(last_of_operation && b.last && b.backwards_left == 0, false, b.at);
  }
  ~backward_now() {
    if (held_ != nullptr) held_->close_window();
  }
  backward_now(const backward_now&) = delete;
  backward_now& operator=(const backward_now&) = delete;

 private:
  held_gradients* held_ = nullptr;
};

}  // namespace engine

}  // namespace tessera::nn

#ifndef TESSERA_COMPILED
#include <tessera/nn/pipeline/pipeline_batch_impl.hpp>
#include <tessera/nn/pipeline/pipeline_operations_impl.hpp>
#include <tessera/nn/pipeline/pipeline_run_impl.hpp>
#include <tessera/nn/pipeline/tied_parameters_impl.hpp>
#endif
