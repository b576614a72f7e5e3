#pragma once

#include <tessera/nn/network/dynamic_flow.hpp>
#include <tessera/nn/pipeline/pipeline_run.hpp>
#include <tessera/operation/network/staged.hpp>

namespace tessera::nn {

/// Pipeline parallel training of a network whose parts lie on coordinates of an axis.
///
///   ts::nn::pipeline_parallel pipeline(net, "stage", ts::pipeline::schedule{ts::pipeline::order::one_f_one_b, {4,
///   8}}); auto loss = pipeline.forward_backward({images, labels})[0]; optimizer.step();
///
/// A stage is what lies `on` a coordinate of the axis; `to` or `repartition` leads to the next one. A batch is cut into
/// micro-batches along the first dimension of its inputs, on each worker for itself. The schedule is run before
/// anything else: one that lets stages wait for each other is refused. Gradients, losses and means are those of the
/// whole batch, as if it had been run in micro-batches one after another. The first output is the loss.
///
/// All workers make it and call it in one order; it shares the network's parameters and lives on its own.
class pipeline_parallel {
 public:
  template <class Network, class Schedule>
  pipeline_parallel(const Network& net, std::string_view axis, const Schedule& schedule, pipeline_options options = {})
      : run_(std::make_shared<engine::pipeline_run>(net, inputs_of(net), axis, schedule.of, listed(schedule),
                                                    std::move(options))) {}

  /// Forward and backward of all micro-batches. Returns the outputs of the whole batch, whose gradients were taken.
  ///
  /// Gradients that are held wait for the `last` batch before a step. Where the schedule has steps, `options.step` is
  /// called in it.
  std::vector<tensor<dyn>> forward_backward(const std::vector<tensor<dyn>>& inputs, bool last = true,
                                            call_site at = call_site::here()) {
    return run_->run(inputs, true, last, at);
  }
  /// The outputs alone, without gradients.
  std::vector<tensor<dyn>> forward(const std::vector<tensor<dyn>>& inputs, call_site at = call_site::here()) {
    return run_->run(inputs, false, true, at);
  }

  /// The operations of each stage in the last batch, as its first worker ran them; all workers ask together.
  ///
  /// `svg_of(schedule, pipeline.timeline())` of tessera/inspect/svg_schedule.hpp draws them.
  std::vector<std::vector<pipeline::timed_operation>> timeline() const { return run_->timeline(); }

  /// Which part of the network each node is in, and what goes from one to another.
  const engine::stage_map& stages() const { return run_->stages(); }

 private:
  template <class Network>
  static std::vector<tensor_value> inputs_of(const Network& net) {
    std::vector<tensor_value> all;
    if constexpr (requires { net.inputs(); })
      for (const engine::program_end& one : net.inputs()) all.push_back(one.is);
    else
      [&]<class... In>(tessera::detail::type_list<In...>) {
        (all.push_back(value_of<In>), ...);
      }(typename Network::inputs{});
    return all;
  }
  template <class Schedule>
  static engine::pipeline_run::operations listed(const Schedule& s) {
    tessera::engine::check(pipeline::run_of(s).why);
    engine::pipeline_run::operations all(static_cast<std::size_t>(s.of.stages));
    for (int stage = 0; stage < s.of.stages; ++stage)
      for (int i = 0; i < pipeline::engine::count_of(s, stage); ++i)
        all[static_cast<std::size_t>(stage)].push_back(s.at(stage, i));
    return all;
  }

  std::shared_ptr<engine::pipeline_run> run_;
};

}  // namespace tessera::nn
