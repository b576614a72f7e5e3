#pragma once
// A network of six layers in a pipeline, beside LibTorch's of the whole batch.

#include "tests/support/stage_layouts.hpp"

#include <tessera/nn/network/program_parts.hpp>
#include <tessera/nn/pipeline/pipeline_parallel.hpp>

namespace pipelined {

using namespace tessera;
using namespace tessera::testing;

/// Six layers over the parts of a pipeline, as even as may be, and the mean square of what they give. The first three
/// may be others.
template <class Layer = nn::linear<5>, class First = Layer>
void build(nn::program& p, const mesh_value& m, const pipeline::extent& of, index_t rows) {
  auto x = p.input({on_stage(m, {rows, 5}, 0), element::float64});
  auto wanted = p.input({on_stage(m, {rows, 5}, 0), element::float64});
  int now = 0;
  for (int i = 0; i < 6; ++i) {
    const int part = i * of.parts() / 6;
    if (part != now) x = to(on_stage(m, {dynamic, 5}, of.stage_of(part)), x);
    now = part;
    x = tanh(i < 3 ? First{}(x) : Layer{}(x));
  }
  const auto there = to(on_stage(m, {dynamic, 5}, of.stage_of(now)), wanted);
  const auto loss = mean(square(x - there));
  p.output(loss);
  p.output(to(tessera::engine::one_number(m), loss));  // for all
}

/// What differs in its loss and gradients on this worker, by a schedule.
template <class Schedule>
std::string differs(const team_handle& team, const Schedule& schedule, index_t rows, bool uneven = false) {
  const team_state& t = *team;
  const at::Tensor x = global_of({rows, 5}, numbers{1}), y = global_of({rows, 5}, numbers{2});
  nn::program p;
  build(p, t.mesh(), schedule.of, rows);
  nn::dynamic_network net(team, seed{5}, p);
  const nn::state_dict state = nn::state_of(net);
  std::map<std::string, at::Tensor> leaves;
  at::Tensor h = x;
  for (int i = 0; i < 6; ++i) {
    const auto leaf = [&](const char* name) {
      const std::string key = fmt::format("{}.{}", i, name);
      return leaves[key] = state.at(key).cpu().clone().requires_grad_();
    };
    const at::Tensor w = leaf("weight"), b = leaf("bias");
    h = at::tanh(at::linear(h, w, b));
  }
  const at::Tensor loss = at::mean(at::square(h - y));
  loss.backward();
  nn::pipeline_parallel pipeline(
      net, last_axis(t.mesh()), schedule,
      {.rows = uneven ? pipeline::micro_batch_sizes::uneven : pipeline::micro_batch_sizes::equal});
  const layout lies = on_stage(t.mesh(), {rows, 5}, 0);
  const std::vector<tensor<dyn>> given{distribute(team, lies, x.to(device_of(t))),
                                       distribute(team, lies, y.to(device_of(t)))};
  const auto far = [&](const tensor<dyn>& found) {
    return std::abs(full_tensor(found).cpu().item<double>() - loss.item<double>()) > 1e-12;
  };
  std::string wrong = far(pipeline.forward_backward(given)[0]) ? "the loss " : "";
  net.each_parameter([&](const nn::parameter& q) {
    const at::Tensor off = full_tensor(q.stored().grad()).cpu() - leaves.at(q.path()).grad();
    if (off.abs().max().item<double>() > 1e-12) wrong += q.path() + " ";
  });
  const auto alone = pipeline.forward(given);
  if (far(alone[0]) || far(alone[1])) wrong += "forward alone ";
  if (std::abs(alone[1].local().cpu().item<double>() - loss.item<double>()) > 1e-12) wrong += "the loss for all ";
  return wrong;
}

}  // namespace pipelined
