#pragma once
// Six layers in a pipeline whose stages step by the schedule, beside LibTorch's optimizer on the whole network.

#include "tests/support/pipelines.hpp"

#include <torch/optim/adam.h>

namespace pipelined {

/// Whose parameters the optimizer of a worker has: those of its own stage, or all, of which it holds only those.
enum class stepping { own, all };

/// What differs after five batches of Adam on this worker. Of each second batch a first half is run before, without a
/// step, and the step is by both.
template <class Layer = nn::linear<5>, class First = Layer, class Schedule>
std::string stepped_differently(const team_handle& team, const Schedule& schedule, index_t rows, stepping how,
                                std::vector<nn::stage_pass>* passes = nullptr) {
  const team_state& t = *team;
  nn::program p;
  build<Layer, First>(p, t.mesh(), schedule.of, rows);
  nn::dynamic_network net(team, seed{5}, p);
  std::map<std::string, at::Tensor> w;
  std::vector<at::Tensor> leaves;
  for (const auto& [key, one] : nn::state_of(net)) leaves.push_back(w[key] = one.cpu().clone().requires_grad_());
  coordinates at;
  t.mesh().locate(t.rank(), at);
  const int stage = at[t.mesh().axes.count - 1], stage_axis = t.mesh().axes.count - 1;
  std::vector<at::Tensor> mine;
  net.each_parameter([&](const nn::parameter& q) {
    if (how == stepping::all || nn::engine::stage_of(q.stored().layout(), stage_axis) == stage)
      mine.push_back(q.stored().local());
  });
  torch::optim::Adam here(mine, 0.05), serial(leaves, 0.05);
  std::string wrong;
  int steps = 0;
  nn::pipeline_options options{.rows = pipeline::micro_batch_sizes::uneven};
  options.step = [&](const nn::stage_pass& now) {
    if (now.stage != stage) wrong += "another stage ";
    if (passes != nullptr) passes->push_back(now);
    here.step();
    ++steps;
  };
  nn::pipeline_parallel pipeline(net, last_axis(t.mesh()), schedule, options);
  const layout lies = on_stage(t.mesh(), {rows, 5}, 0);
  for (std::uint64_t batch = 0; batch < 5; ++batch) {
    here.zero_grad();
    serial.zero_grad();
    for (const bool last : {false, true}) {
      if (!last && batch % 2 == 0) continue;
      const at::Tensor x = global_of({rows, 5}, numbers{4 * batch + last});
      const at::Tensor y = global_of({rows, 5}, numbers{4 * batch + 2 + last});
      const std::vector<tensor<dyn>> given{distribute(team, lies, x.to(device_of(t))),
                                           distribute(team, lies, y.to(device_of(t)))};
      if (last && batch == 3) pipeline.forward(given);  // nothing steps
      const double loss = full_tensor(pipeline.forward_backward(given, last)[0]).cpu().item<double>();
      at::Tensor h = x;
      for (int i = 0; i < 6; ++i)
        h = at::tanh(at::linear(h, w.at(fmt::format("{}.weight", i)), w.at(fmt::format("{}.bias", i))));
      const at::Tensor wanted = at::mean(at::square(h - y));
      wanted.backward();
      if (std::abs(loss - wanted.item<double>()) > 1e-12) wrong += fmt::format("loss of batch {} ", batch);
    }
    serial.step();
    if (steps != static_cast<int>(batch) + 1) wrong += fmt::format("{} steps behind batch {} ", steps, batch);
  }
  for (const auto& [key, one] : nn::state_of(net))
    if ((one.cpu() - w.at(key)).abs().max().template item<double>() > 1e-12) wrong += key + " ";
  return wrong;
}

}  // namespace pipelined
