#include "tests/support/tensors.hpp"

#include <tessera/nn/network/program_parts.hpp>

using namespace tessera;
using namespace tessera::engine;
using namespace tessera::testing;

// Layers that draw, of calls that are refused, and where nobody but one coordinate has their operands.

namespace refused_draws {

layout lying(const mesh_value& on, std::initializer_list<index_t> extents, const axis_placement& first) {
  layout x;
  x.mesh = on;
  x.placements.push(first);
  for (const index_t n : extents) {
    x.dims.push({});
    x.dims[x.dims.count - 1].extent = n;
  }
  return x;
}

mesh_value line(int size) {
  mesh_value m;
  m.axes.push({text{"a"}, size, 1});
  return row_major(m);
}

/// How often a network has drawn.
std::int64_t draws_of(const nn::dynamic_network& net) {
  for (const auto& [key, value] : nn::state_of(net))
    if (key.ends_with("draws")) return value.item<std::int64_t>();
  return -1;
}

}  // namespace refused_draws

// A sample of classes and a mask were drawn, and counted, before labels and lengths were looked at.
TEST_CASE("a call that is refused has drawn nothing, so the next one draws what it would have drawn",
          "[refusal][regression]") {
  using namespace refused_draws;
  const mesh_value on = line(2);
  const auto run = on_workers(2, [&](const std::shared_ptr<transport>& carrier) {
    const team_handle t = std::make_shared<team_state>(carrier, on);
    std::string all;
    const auto tried = [&](const nn::dynamic_network& net, const std::vector<tensor<dyn>>& good,
                           const std::vector<tensor<dyn>>& bad) {
      net(good);
      const std::int64_t before = draws_of(net);
      all += told([&] { net(bad); }) + fmt::format(" {} {}; ", before, draws_of(net));
    };
    {
      const layout x = lying(on, {4, 3}, {placement::invariant}), y = lying(on, {4}, {placement::invariant});
      nn::program p;
      const auto in = p.input({x, element::float64}), labels = p.input({y, element::int64});
      p.output(nn::under("head", nn::linear_cross_entropy_layer{.classes = 5, .sample_rate = 0.5})(in, labels));
      const nn::dynamic_network net(t, seed{5}, p);
      const auto of = [&](index_t label) {
        return std::vector<tensor<dyn>>{distribute(t, x, global_of({4, 3}, numbers{1})),
                                        distribute(t, y, at::full({4}, label, at::kLong))};
      };
      tried(net, of(2), of(5));
    }
    {
      const layout q = lying(on, {1, 4, 1, 1, 2}, {}), k = lying(on, {1, 4, 1, 2}, {}), ends = lying(on, {3}, {});
      nn::program p;
      const auto a = p.input({q, element::float64}), b = p.input({k, element::float64}),
                 c = p.input({ends, element::int64});
      p.output(nn::under("attention", nn::attention_layer{.probability = 0.5})(a, b, b, c));
      const nn::dynamic_network net(t, seed{5}, p);
      const auto of = [&](const at::Tensor& lengths) {
        return std::vector<tensor<dyn>>{distribute(t, q, global_of({1, 4, 1, 1, 2}, numbers{1})),
                                        distribute(t, k, global_of({1, 4, 1, 2}, numbers{2})),
                                        distribute(t, ends, lengths)};
      };
      tried(net, of(at::tensor({0, 2, 4}, at::kLong)), of(at::tensor({0, 2, 5}, at::kLong)));
    }
    return all;
  });
  for (int r = 0; r < 2; ++r) CHECK(run.of(r) == "tessera.loss.label 1 1; tessera.attention.lengths 1 1; ");
}

// Workers without the features had NaN for the loss, under a layout that said that they hold it.
TEST_CASE("a loss of features that one coordinate holds is held there", "[plan][regression]") {
  using namespace refused_draws;
  const axis_placement at_one = held_on(1);
  const layer_plan p = nn::linear_cross_entropy_layer{.classes = 5}.plan(
      {lying(line(2), {4, 3}, at_one), element::float64}, {lying(line(2), {4}, at_one), element::int64});
  REQUIRE(p.why.ok());
  CHECK(p.output().placements[0] == at_one);
}
