#include "tests/support/pipelines.hpp"

namespace tessera::testing::skipped_chunks {

using namespace pipelined;

namespace {

struct stage : axis<2> {};

/// A value of the first chunk that two later chunks of its stage add, which stand in the program in either order.
std::string differs(const team_handle& team, bool last_one_first) {
  const mesh_value& m = team->mesh();
  const auto there = [&](int s, const auto& x) { return to(on_stage(m, {dynamic, 5}, s), x); };
  nn::program p;
  const auto v = tanh(nn::linear<5>{}(p.input({on_stage(m, {4, 5}, 0), element::float64})));
  const auto u = tanh(nn::linear<5>{}(there(0, tanh(nn::linear<5>{}(there(1, v))))));
  const auto w = there(0, tanh(nn::linear<5>{}(there(1, u))));
  const auto first = last_one_first ? tanh(w + v) : tanh(u + v);
  const auto second = last_one_first ? tanh(u + v) : tanh(w + v);
  p.output(mean(square(there(1, first))) + 2 * mean(square(there(1, second))));
  nn::dynamic_network net(team, seed{5}, p);
  nn::pipeline_parallel pipe(net, last_axis(m), pipeline::schedule{pipeline::order::interleaved, {2, 2, 3}});
  const auto x = distribute(team, on_stage(m, {4, 5}, 0), global_of({4, 5}, numbers{1}));
  const auto wanted = net({x});
  wanted[0].backward();
  std::vector<at::Tensor> gradients;
  net.each_parameter(
      [&](const nn::parameter& q) { gradients.push_back(std::exchange(q.stored().local().mutable_grad(), {})); });
  const auto got = pipe.forward_backward({x});
  if (!at::allclose(full_tensor(got[0]), full_tensor(wanted[0]))) return "another loss";
  std::string all;
  auto next = gradients.begin();
  net.each_parameter([&](const nn::parameter& q) {
    const at::Tensor& g = *next++;
    if (g.defined() && !at::allclose(g, q.stored().local().grad(), 1e-12, 1e-14)) all += q.path() + " ";
  });
  return all;
}

}  // namespace

TEST_CASE("a value of a chunk goes to several later ones of its stage, in whatever order these stand in the program",
          "[law][runtime][gradient][regression]") {
  for (const bool last_one_first : {false, true}) {
    const auto run = in_team<mesh<stage>>([&](const auto& t) { return differs(t.state(), last_one_first); });
    INFO(run.errors());
    for (const auto& r : run.results) CHECK(r.value_or("lost") == "");
  }
}

}  // namespace tessera::testing::skipped_chunks
