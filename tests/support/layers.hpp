#pragma once
// Layers whose layouts are rolled at run time, held against the serial layer: output, gradients, one optimizer step.

#include <torch/optim/sgd.h>

#include "tensors.hpp"

#include <functional>

namespace tessera::testing {

using namespace engine;

/// A layer on a layout: its plan, its forward and what LibTorch does in one process.
struct layer_case {
  layer_plan plan;
  std::function<at::Tensor(const team_handle&, const layer_plan&, const at::Tensor&, const std::vector<nn::parameter>&)>
      forward;
  std::function<at::Tensor(const at::Tensor&, const std::vector<at::Tensor>&)> serial;
};

/// A layer of the library on one box.
template <class L>
at::Tensor forward_of(const team_handle& team, const layer_plan& p, const at::Tensor& in,
                      const std::vector<nn::parameter>& w) {
  const nn::engine::bound_layer bound(team, p);
  const std::vector<at::Tensor> operands{in};
  const nn::engine::layer_state state{w, {}};
  return nn::forward({bound, operands, state}, L::description());
}

/// The grids that layers are tried on: axes a x b, the world.
inline constexpr int grids[][2]{{1, 1}, {1, 2}, {2, 1}, {2, 2}, {3, 1}, {2, 3}, {1, 4}};

inline mesh_value grid_of(int rows, int columns) {
  mesh_value m;
  m.axes.push({text{"a"}, rows, 1});
  m.axes.push({text{"b"}, columns, 1});
  return row_major(m);
}

namespace detail {

inline std::vector<at::Tensor> values_of(const layer_plan& p, std::uint64_t salt) {
  std::vector<at::Tensor> all;
  for (int i = 0; i < p.parameters(); ++i) all.push_back(global_of(extents_of(p.stored(i)), numbers{salt++}));
  return all;
}

struct layer_seen {
  at::Tensor y;
  at::Tensor x_gradient;
  std::vector<at::Tensor> gradients;
  std::vector<at::Tensor> stepped;
};

template <class Get>
std::vector<at::Tensor> each(const outcome<layer_seen>& run, Get&& get) {
  std::vector<at::Tensor> all;
  for (const auto& r : run.results) all.push_back(get(*r));
  return all;
}

}  // namespace detail

/// What differs from the serial layer, or nothing. Input and cotangent are functions of their global index.
inline std::string differs(const layer_case& layer, std::uint64_t salt) {
  const layer_plan& p = layer.plan;
  const int world = p.given().mesh.size();
  const torch::optim::SGDOptions options = torch::optim::SGDOptions(0.1).momentum(0.5).weight_decay(0.01);

  const at::Tensor x = global_of(extents_of(p.given()), numbers{salt}).set_requires_grad(true);
  std::vector<at::Tensor> w = detail::values_of(p, salt + 10);
  for (auto& t : w) t.set_requires_grad(true);
  const at::Tensor y = layer.serial(x, w);
  if (y.sizes().vec() != extents_of(p.output())) return fmt::format("the output has other extents than the serial one");
  const at::Tensor seed = global_of(extents_of(p.output()), numbers{salt + 20});
  y.backward(seed);
  std::vector<at::Tensor> gradients;
  for (const auto& t : w) gradients.push_back(t.grad().clone());
  if (!w.empty()) torch::optim::SGD(w, options).step();

  const shards xs = deal(p.given(), world, x.detach(), salt + 30);
  const shards seeds = deal(cotangent(p.output()), world, seed, salt + 40);
  const auto run = on_workers(world, [&](const std::shared_ptr<transport>& carrier) {
    const auto r = static_cast<std::size_t>(carrier->rank());
    const auto team = std::make_shared<team_state>(carrier, p.given().mesh);
    std::vector<nn::parameter> parameters;
    const auto values = detail::values_of(p, salt + 10);
    std::vector<at::Tensor> leaves;
    for (int i = 0; i < p.parameters(); ++i) {
      parameters.emplace_back(team, fmt::format("0.{}", p.parameter(i).name), p.parameter(i), element::float64,
                              tessera::seed{1});
      parameters.back().assign(values[static_cast<std::size_t>(i)]);
      leaves.push_back(parameters.back().stored().local());
    }
    const at::Tensor leaf = xs.local[r].clone().set_requires_grad(true);
    detail::layer_seen s;
    s.y = layer.forward(team, p, leaf, parameters);
    s.y.backward(seeds.local[r]);
    s.y = s.y.detach();
    s.x_gradient = leaf.grad();
    for (const auto& t : leaves) s.gradients.push_back(t.grad().clone());
    if (!leaves.empty()) torch::optim::SGD(leaves, options).step();
    for (const auto& t : leaves) s.stepped.push_back(t.detach());
    return s;
  });
  if (!run.well()) return run.errors().substr(0, 400);
  const auto judge = [](const char* what, double d) {
    return d < 1e-12 ? std::string{} : fmt::format("{} off by {}", what, d);
  };
  std::string why = judge("output", distance(p.output(), detail::each(run, [](const auto& s) { return s.y; }), y));
  why += judge("input gradient",
               distance(cotangent(p.given()), detail::each(run, [](const auto& s) { return s.x_gradient; }), x.grad()));
  for (int i = 0; i < p.parameters(); ++i) {
    const auto k = static_cast<std::size_t>(i);
    const layout& stored = p.stored(i);
    why += judge(
        "parameter gradient",
        distance(cotangent(stored), detail::each(run, [&](const auto& s) { return s.gradients[k]; }), gradients[k]));
    why += judge("stepped parameter",
                 distance(stored, detail::each(run, [&](const auto& s) { return s.stepped[k]; }), w[k]));
  }
  return why;
}

/// Tries rolled cases on every grid; says what failed, and how many the rules accepted.
struct layer_trials {
  int accepted = 0;
  int refused = 0;
  int failures = 0;
  std::string said;

  template <class Roll>
  void run(std::uint64_t seed, int rounds, Roll&& roll) {
    dice d{seed};
    for (const auto& grid : grids)
      for (int round = 0; round < rounds; ++round) {
        const layer_case layer = roll(d, grid_of(grid[0], grid[1]));
        if (!layer.plan.why.ok()) {
          ++refused;
          continue;
        }
        ++accepted;
        const std::string why = differs(layer, d.next());
        if (why.empty() || ++failures > 3) continue;
        said += fmt::format("seed {} grid {}x{} round {}: {}\n  {}\n  used {}\n  raw {}\n  gives {}\n", seed, grid[0],
                            grid[1], round, why, shown(layer.plan.given()), shown(layer.plan.used()),
                            shown(layer.plan.raw()), shown(layer.plan.output()));
      }
  }
};

}  // namespace tessera::testing
