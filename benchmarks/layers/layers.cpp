// Forward and backward of a layer on two workers against two layers of LibTorch of half the size, one on each, at once:
// what splitting costs beside the work. Alone: on threads. Under mpirun: over MPI. One JSON line a layer, of all or of
// those that are named; --small takes small boxes.
// --tiny takes boxes on which nothing is to do, and against each layer the whole of LibTorch's, on either worker: what
// a call costs. scripts/bench layers runs all and judges medians.
//
// Both sides run in turns on the same workers, one call a batch, of tiny ones many; a batch takes from its first
// worker's beginning to its last one's end.
#include "benchmarks/calls/crew.hpp"

#include <tessera/comm/launch/environment.hpp>
#include <tessera/nn/network/program.hpp>
#include <tessera/operation/layer/layer_values.hpp>
#include <tessera/tessera.hpp>

#include <ATen/Parallel.h>
#include <c10/core/AutogradState.h>
#include <torch/csrc/autograd/autograd.h>

namespace ts = tessera;

namespace {

using clock_type = std::chrono::steady_clock;
using ts::index_t;
using sizes = std::vector<index_t>;

/// A layer on an input that is cut along one dimension, and what each worker runs of it by itself.
struct layer_case {
  const char* name;
  sizes extents;
  int cut;
  std::function<ts::nn::dynamic_flow(const ts::nn::dynamic_flow&)> add;
  std::vector<sizes> weights;  // of the serial half
  sizes half;                  // of the input; of a tiny one all
  std::function<at::Tensor(const at::Tensor&, const std::vector<at::Tensor>&)> serial;
};

/// The layers on boxes of some megabytes, as networks have them, at k = 2; of one, which take a tenth as long, at 1.
std::vector<layer_case> cases(index_t k) {
  using namespace ts::nn;
  using all = const std::vector<at::Tensor>&;
  using one = const at::Tensor&;
  const index_t wide = 512 * k, few = 16 * k * k, many = 64 * k, samples = 8 * k;
  return {
      {"linear",
       {1024 * k * k, wide},
       0,
       [=](const auto& x) { return x | linear_layer{.out = wide}; },
       {{wide, wide}, {wide}},
       {512 * k * k, wide},
       [](one x, all w) { return at::linear(x, w[0], w[1]); }},
      {"linear_features",
       {512 * k * k, 2 * wide},
       1,
       [=](const auto& x) { return x | linear_layer{.out = wide}; },
       {{wide, wide}, {wide}},
       {512 * k * k, wide},
       [](one x, all w) { return at::linear(x, w[0], w[1]); }},
      {"conv_space",
       {8, few, 96, 96},
       2,
       [=](const auto& x) { return x | conv_layer{.out = few, .kernel = {3, 3}, .padding = {1}}; },
       {{few, few, 3, 3}, {few}},
       {8, few, 48, 96},
       [](one x, all w) { return at::conv2d(x, w[0], w[1], 1, 1); }},
      {"conv_channels",
       {8, many, 48, 48},
       1,
       [=](const auto& x) { return x | conv_layer{.out = many, .kernel = {3, 3}, .padding = {1}}; },
       {{many / 2, many, 3, 3}, {many / 2}},
       {8, many, 48, 48},
       [](one x, all w) { return at::conv2d(x, w[0], w[1], 1, 1); }},
      {"conv_transpose",
       {8, few, 64, 64},
       2,
       [=](const auto& x) {
         return x | conv_transpose_layer{.out = few, .kernel = {4, 4}, .stride = {2}, .padding = {1}};
       },
       {{few, few, 4, 4}, {few}},
       {8, few, 32, 64},
       [](one x, all w) { return at::conv_transpose2d(x, w[0], w[1], {2, 2}, {1, 1}); }},
      {"max_pool",
       {samples, few, 128, 128},
       2,
       [](const auto& x) { return x | max_pool_layer{.kernel = {3, 3}, .stride = {2}, .padding = {1}}; },
       {},
       {samples, few, 64, 128},
       [](one x, all) { return at::max_pool2d(x, {3, 3}, {2, 2}, {1, 1}); }},
      {"avg_pool",
       {samples, few, 128, 128},
       2,
       [](const auto& x) { return x | avg_pool_layer{.kernel = {3, 3}, .stride = {2}, .padding = {1}}; },
       {},
       {samples, few, 64, 128},
       [](one x, all) { return at::avg_pool2d(x, {3, 3}, {2, 2}, {1, 1}); }},
      {"batch_norm",
       {2 * samples, few, 64, 64},
       0,
       [](const auto& x) { return x | batch_norm_layer{}; },
       {{few}, {few}, {few}, {few}},
       {samples, few, 64, 64},
       [](one x, all w) {
         return at::batch_norm(x, w[0], w[1], w[2].detach(), w[3].detach(), true, 0.1, 1e-5, false);
       }},
      {"layer_norm",
       {1024 * k * k, 2 * wide},
       1,
       [](const auto& x) { return x | layer_norm_layer{}; },
       {{wide}, {wide}},
       {1024 * k * k, wide},
       [=](one x, all w) { return at::layer_norm(x, {wide}, w[0], w[1]); }},
      {"upsample",
       {8, few, 64, 64},
       2,
       [](const auto& x) { return x | upsample_layer{.factors = {2, 2}, .mode = ts::interpolation::linear}; },
       {},
       {8, few, 32, 64},
       [](one x, all) { return at::upsample_bilinear2d(x, {64, 128}, false, 2.0, 2.0); }},
      {"dropout",
       {samples, few, 128, 128},
       2,
       [](const auto& x) { return x | dropout_layer{}; },
       {},
       {samples, few, 64, 128},
       [](one x, all) { return at::dropout(x, 0.5, true); }},
  };
}

/// Layers on boxes on which nothing is to do.
std::vector<layer_case> tiny_cases() {
  using namespace ts::nn;
  using all = const std::vector<at::Tensor>&;
  using one = const at::Tensor&;
  const sizes rows{2, 4, 64}, image{1, 8, 8, 8};
  const auto linear = [](const auto& x) { return x | linear_layer{.out = 64}; };
  const auto conv = [](const auto& x) { return x | conv_layer{.out = 8, .kernel = {3, 3}, .padding = {1}}; };
  const auto its_linear = [](one x, all w) { return at::linear(x, w[0], w[1]); };
  const auto its_conv = [](one x, all w) { return at::conv2d(x, w[0], w[1], 1, 1); };
  return {
      {"linear", rows, 0, linear, {{64, 64}, {64}}, rows, its_linear},
      {"linear_features", rows, 2, linear, {{64, 64}, {64}}, rows, its_linear},
      {"conv_space", image, 2, conv, {{8, 8, 3, 3}, {8}}, image, its_conv},
      {"conv_channels", image, 1, conv, {{8, 8, 3, 3}, {8}}, image, its_conv},
      {"max_pool",
       image,
       2,
       [](const auto& x) { return x | max_pool_layer{.kernel = {3, 3}, .stride = {2}, .padding = {1}}; },
       {},
       image,
       [](one x, all) { return at::max_pool2d(x, {3, 3}, {2, 2}, {1, 1}); }},
      {"avg_pool",
       image,
       2,
       [](const auto& x) { return x | avg_pool_layer{.kernel = {2, 2}, .stride = {2}}; },
       {},
       image,
       [](one x, all) { return at::avg_pool2d(x, {2, 2}, {2, 2}); }},
      {"layer_norm",
       rows,
       2,
       [](const auto& x) { return x | layer_norm_layer{}; },
       {{64}, {64}},
       rows,
       [](one x, all w) { return at::layer_norm(x, {64}, w[0], w[1]); }},
      {"mlp",
       rows,
       2,
       [](const auto& x) { return gelu(x | linear_layer{.out = 256}) | linear_layer{.out = 64}; },
       {{256, 64}, {256}, {64, 256}, {64}},
       rows,
       [](one x, all w) { return at::linear(at::gelu(at::linear(x, w[0], w[1])), w[2], w[3]); }},
  };
}

double median(std::vector<double> v) {
  std::sort(v.begin(), v.end());
  return v[v.size() / 2];
}

void measure(calls::crew& crew, const ts::team_handle& team, const layer_case& c, int batches, int times) {
  ts::layout cut;
  cut.mesh = team->mesh();
  cut.placements.resize(1);
  for (const index_t n : c.extents) {
    ts::engine::dimension d;
    d.extent = n;
    cut.dims.push(d);
  }
  cut.cut_by(c.cut, 0);
  ts::nn::program p;
  p.output(c.add(p.input({cut, ts::element::float32})));
  const ts::nn::dynamic_network net(team, ts::seed{1}, p);
  ts::tensor<ts::dyn> x = ts::distribute(team, cut, at::rand(c.extents, ts::common_generator(team, ts::seed{2})));
  x.requires_grad();
  const at::Tensor seed = at::ones(net(x).local().sizes());
  const std::vector<at::Tensor> parameters = net.parameters();
  const auto ours = [&] {
    torch::autograd::backward({net(x).local()}, {seed});
    x.local().mutable_grad().reset();
    for (const at::Tensor& w : parameters) w.mutable_grad().reset();
  };

  const at::Tensor alone = at::rand(c.half).requires_grad_();
  std::vector<at::Tensor> weights;
  for (const sizes& n : c.weights) weights.push_back(at::rand(n).requires_grad_());
  const at::Tensor its_seed = at::rand(c.serial(alone, weights).sizes());
  const auto theirs = [&] {
    torch::autograd::backward({c.serial(alone, weights)}, {its_seed});
    alone.mutable_grad().reset();
    for (const at::Tensor& w : weights) w.mutable_grad().reset();
  };

  std::vector<std::vector<calls::span>> spans(2);
  const auto now = [] { return std::chrono::duration<double>(clock_type::now().time_since_epoch()).count(); };
  const auto batch = [&](std::size_t i, const auto& call) {
    crew.meet();
    const double began = now();
    for (int k = 0; k < times; ++k) call();
    spans[i].push_back({began, now()});
  };
  for (int b = 0; b < batches; ++b) {
    batch(0, ours);
    batch(1, theirs);
  }
  std::vector<double> took[2];
  for (std::size_t i = 0; i < 2; ++i) {
    if (batches > 3) spans[i].erase(spans[i].begin(), spans[i].begin() + 3);  // memory is found, exchanges are bound
    took[i] = crew.lengths(team->rank(), spans[i]);
  }
  if (team->rank() == 0)
    fmt::print(
        "{{\"layer\": \"{}\", \"transport\": \"{}\", \"tessera\": {:.1f}, \"serial\": {:.1f}, \"unit\": "
        "\"microseconds\"}}\n",
        c.name, team->carrier().traits().name, 1e6 * median(took[0]) / times, 1e6 * median(took[1]) / times);
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string_view> named(argv + 1, argv + argc);
  const bool once = std::erase(named, "--once") > 0, small = std::erase(named, "--small") > 0,
             tiny = std::erase(named, "--tiny") > 0;
  ts::mesh_value row;
  row.axes.push({ts::text("worker"), 2, 1});
  ts::launch_options options;
  options.time_limit = std::chrono::seconds(60);
  calls::crew crew(2, ts::read_environment().by == ts::engine::launcher::mpi);
  return ts::launch(argc, argv, options, ts::row_major(row), [&](const ts::team_handle& team) {
    at::set_num_threads(1);
    c10::AutogradState::get_tls_state().set_multithreading_enabled(false);
    for (const layer_case& c : tiny ? tiny_cases() : cases(small ? 1 : 2))
      if (named.empty() || std::find(named.begin(), named.end(), c.name) != named.end())
        measure(crew, team, c, once ? 1 : small || tiny ? 44 : 22, tiny && !once ? 50 : 1);
  });
}
