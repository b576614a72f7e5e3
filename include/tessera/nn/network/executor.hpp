#pragma once

#include <tessera/generated/nn.hpp>
#include <tessera/nn/layer/forward.hpp>
#include <tessera/nn/network/bound_program.hpp>
#include <tessera/nn/network/check_replicas.hpp>
#include <tessera/nn/network/network_part.hpp>
#include <tessera/nn/network/observer.hpp>
#include <tessera/operation/network/network.hpp>
#include <tessera/operation/plan/open_dimensions.hpp>

#include <memory>
#include <optional>

namespace tessera::nn::engine {

class held_gradients;
class pipeline_run;

/// A layer at run time: its type's record, its plan for the operands at hand, and its forward.
struct node_record : layer_record {
  layer_plan (*planned_for)(const void* layer, std::span<const tensor_value* const> operands) = nullptr;
  std::vector<at::Tensor> (*run)(const void* layer, const call&) = nullptr;
  /// The extent that data give, of a layer whose plan may leave one open.
  std::optional<open_extents> (*measured)(const void* layer, const measured_call&) = nullptr;

  layer_plan plan_for(std::span<const tensor_value* const> operands) const { return planned_for(layer, operands); }
  std::vector<at::Tensor> forward(const call& c) const { return run(layer, c); }
};

/// A program while it runs: parameters, plans for the extents at hand, forward. Which program is a value.
///
/// Initial values depend on seed, path and global index alone: every partition starts from the same bits. A network
/// moves and does not copy; one that was moved from refuses every use.
class executor {
 public:
  /// The stored forms that an optimizer steps: local leaves.
  std::vector<at::Tensor> parameters() const;

  template <class Visit>
  void each_parameter(Visit&& visit) const {
    each_state([&](const layer_state& layer) {
      for (const parameter& p : layer.parameters) visit(p);
    });
  }
  /// The state that forward assigns: running statistics, counters.
  template <class Visit>
  void each_buffer(Visit&& visit) const {
    each_state([&](const layer_state& layer) {
      for (const buffer& b : layer.buffers) visit(b);
    });
  }

  /// The parameters and buffers whose keys begin with the path, all without one, from which another network is made
  /// that shares them. Their keys there begin behind the path.
  network_part at(std::string_view path = {}) const;

  /// Whether layers behave as in training.
  bool training() const { return here().training; }
  void train(bool on = true) { here().training = on; }
  void eval() { train(false); }

  /// Tells an observer of each layer that this worker enters and leaves, from now on; nobody where it is null.
  void observe(std::shared_ptr<layer_observer> observer) { *here().observer = std::move(observer); }

  /// Compares the copies of all parameters at every so many training calls, and names the first that differs
  /// (`agree_on_copies`). It is one exchange of a number a parameter. By default it compares at the 1st, 2nd, 4th, 8th
  /// … call and at every 100th, unless the launch compares nothing; 0 is never.
  void compare_copies_every(index_t calls) { here().compared_every = calls; }

  /// Whether workers compare indices without a row before an embedding looks them up, by an exchange of a number a
  /// call. The default is on. When off, only the worker with such an index throws, and the others end where they wait
  /// for it.
  void compare_indices(bool on) { here().compares_indices = on; }

  const team_handle& team() const { return here().team; }

  /// The gradients of parameters that are held: what `reduce_gradients` and `accumulation` are for.
  const std::shared_ptr<engine::held_gradients>& held_gradients() const;

 protected:
  using program_type = program_view<node_record>;

  /// Makes the parameters; all workers of the team do, and compare what they make.
  executor(const team_handle& team, const seed& s, const program_type& program, std::shared_ptr<const void> kept = {});
  /// Takes those of a part of another network.
  executor(const network_part& of, const program_type& program, std::shared_ptr<const void> kept = {});
  executor() = default;

  struct copying {};
  /// A network like another one, whose parameters begin with the values of that one's.
  executor(const executor& other, copying);

  /// The program's outputs for tensors like its inputs.
  std::vector<tensor<dyn>> forward(std::span<const tensor<dyn>* const> inputs, call_site at) const;

 private:
  friend class pipeline_run;

  /// A node among the values of a program, which are its inputs, then the results of its nodes in turn.
  struct step {
    const node_record* record;
    std::string path;   ///< "encoder.2", in the keys of the serial model
    std::size_t owner;  ///< the step whose parameters it has: itself, or another that is shared with it
    std::vector<std::size_t> operands;
    std::vector<unsigned> open;  ///< the dimensions of each whose extents its type does not know
    std::size_t first_result;
    std::vector<std::size_t> done_with;  ///< values that nobody reads behind it
    functions::engine::number number;
    const char* called = nullptr;  ///< "layer encoder.2 (conv)", by messages
    std::shared_ptr<const observed_node> seen;
  };
  static constexpr index_t usual = 100;  // calls between comparisons of all copies
  /// Steps that run again for their backward, with the values that come in and those that others read.
  struct recomputed_steps {
    std::size_t first, end;
    std::vector<std::size_t> reads, gives;
  };
  class run;

  struct state {
    team_handle team;
    program_type program;
    std::shared_ptr<const void> kept;  ///< what owns the program, where it is no constant
    std::vector<step> steps;
    std::vector<std::size_t> outputs;
    std::vector<layer_state> states;           // of each step
    std::vector<recomputed_steps> recomputed;  // outer ones first
    recently_used<bound_program> bound;
    std::vector<recently_used<bound_step>> bound_steps;
    bool training = true;
    seed begun;
    std::uint64_t lineage = 0;
    index_t calls = 0;  ///< that train
    index_t calls_without_training = 0;
    std::optional<index_t> compared_every;
    bool compares_indices = true;
    // Graphs have it too.
    std::shared_ptr<std::shared_ptr<layer_observer>> observer = std::make_shared<std::shared_ptr<layer_observer>>();
    std::shared_ptr<engine::held_gradients> held;  ///< made when it is asked for

    std::shared_ptr<std::vector<tessera::detail::hashed_copy>> left =
        std::make_shared<std::vector<tessera::detail::hashed_copy>>();

    state(team_handle of, const program_type& p, std::shared_ptr<const void> owner);

    // The plan of a step for its operands among values that lie so.
    layer_plan plan_of(const step& s, const bound_program& b) const;
    // A step bound for them, once. What its plan leaves open has the extent.
    std::shared_ptr<const bound_step> bound_step_for(std::size_t i, const bound_program& b,
                                                     std::optional<open_extents> extent = {});
    state(const state&) = delete;
    state& operator=(const state&) = delete;
    ~state();

    // Notes the copies that workers compare when the launch ends, if it was trained: a step behind the last call may
    // have made them differ.
    void note_copies() const;
  };

  state& here() const {
    if (!state_) throw error(refusal{code::network_moved_from});
    return *state_;
  }

  // Lets backwards reduce the gradients of parameters that are bundled, unless somebody else sees to them.
  void hear_of_bundled() const;

  // Lets what was gathered of parameters come anew where these may have been stepped since.
  void begin_call() const;

  // Makes the state of each layer, or takes it of another network.
  void begin(const seed& s, const network_part* of);

  // Lets workers compare, when the launch ends, the copies that this network has then, or had when it ended.
  void compare_at_the_end() const;

  // Whether this call, which it counts, compares the copies of all parameters.
  bool compares_now() const;

  // The states that steps do not share with one before.
  template <class Visit>
  void each_state(Visit&& visit) const {
    const state& my = here();
    for (std::size_t i = 0; i < my.steps.size(); ++i)
      if (my.steps[i].owner == i) visit(my.states[i]);
  }

  // The program bound for these inputs, layer by layer, by the compiler's own functions.
  std::shared_ptr<const bound_program> bound_for(std::span<const tensor<dyn>* const> inputs) const;

  std::shared_ptr<state> state_;  // which graphs keep that run a part again
};

}  // namespace tessera::nn::engine

#ifndef TESSERA_COMPILED
#include <tessera/nn/network/executor_binding_impl.hpp>
#include <tessera/nn/network/executor_impl.hpp>
#include <tessera/nn/network/executor_run_impl.hpp>
#endif
