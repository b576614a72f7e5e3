#include "beside_serial.hpp"

#include <torch/optim/adam.h>

using namespace tessera;
using namespace tessera::engine;
using namespace tessera::testing;

// Parameters that heads share, and those that each head has.

namespace of_heads {

/// Rows, heads and features; the heads are cut as the layout says.
const sizes n{3, 4, 6};

}  // namespace of_heads

// NVIDIA/Megatron-LM#7452, 11: the weight of a norm that all heads share had the gradient of each worker's heads, and
// its copies drifted apart by 0.004 in 20 steps of Adam.
TEST_CASE("reports: a weight that cut heads share stays one through 20 steps of Adam, and is the serial one",
          "[regression][gradient]") {
  for (const mesh_value& on : {workers(1), workers(2), workers(3), workers(2, 2)})
    CHECK(wrong_on(on, [&](const team_handle& t) {
            std::string said;
            for (const layout& x : {lying(on, of_heads::n, {{1, 0}}), lying(on, of_heads::n, {{0, 0}}),
                                    lying(on, of_heads::n, {}, placement::invariant)}) {
              const trained_net made(t, {{x, element::float64}},
                                     [](const auto& v) { return v[0] | nn::under("norm", nn::rms_norm_layer{}); });
              at::Tensor w = nn::state_of(made.net).at("norm.weight").clone().set_requires_grad(true);
              torch::optim::Adam ours(made.net.parameters(), torch::optim::AdamOptions(0.05));
              torch::optim::Adam serial({w}, torch::optim::AdamOptions(0.05));
              for (int step = 0; step < 20; ++step) {
                const at::Tensor all = values(of_heads::n, static_cast<std::uint64_t>(step));
                ours.zero_grad();
                serial.zero_grad();
                go_back(made.net(distribute(t, x, all)));
                go_back(at::rms_norm(all, {of_heads::n[2]}, w));
                ours.step();
                serial.step();
              }
              const at::Tensor here = nn::state_of(made.net).at("norm.weight");
              if (!same_copies(t, here)) said += shown(x) + ": copies drifted; ";
              if (!close(here, w.detach())) said += shown(x) + ": weights; ";
            }
            return said;
          }) == "");
}

// NVIDIA/Megatron-LM#7452, 8, NVIDIA/Megatron-LM#7530: a number for each head was cut with the heads, and the norm by
// which gradients are clipped took that of one worker.
TEST_CASE("reports: a norm for clipping has the gradients of all heads, whichever worker has them",
          "[regression][gradient]") {
  for (const mesh_value& on : {workers(1), workers(2), workers(3), workers(2, 2)})
    CHECK(wrong_on(on, [&](const team_handle& t) {
            std::string said;
            for (const layout& x : ways(on, of_heads::n)) {
              const trained_net made(t, {{x, element::float64}}, [](const auto& v) {
                return v[0] | nn::under("slope", nn::prelu_layer{.channelwise = true}) |
                       nn::under("norm", nn::rms_norm_layer{});
              });
              const by_key state = nn::state_of(made.net);
              const at::Tensor slope = state.at("slope.weight").clone().set_requires_grad(true);
              const at::Tensor weight = state.at("norm.weight").clone().set_requires_grad(true);
              go_back(made.net(distribute(t, x, values(of_heads::n))));
              go_back(at::rms_norm(at::prelu(values(of_heads::n), slope), {of_heads::n[2]}, weight));
              const double wanted = at::cat({slope.grad(), weight.grad()}).norm().item<double>();
              const double norm = nn::clip_grad_norm(made.net, 0.5 * wanted);
              if (std::abs(norm - wanted) > 1e-12 * wanted)
                said += fmt::format("{}: {} for {}; ", shown(x), norm, wanted);
              const double factor = 0.5 * wanted / (wanted + 1e-6);  // as LibTorch clips
              const auto all = made.gradients();
              if (!close(all.at("slope.weight"), factor * slope.grad()) ||
                  !close(all.at("norm.weight"), factor * weight.grad()))
                said += shown(x) + ": clipped; ";
            }
            return said;
          }) == "");
}

// NVIDIA/TransformerEngine#3551: a learned number beside the scores of each head, a sink, was left out where keys were
// cut, and its gradient was 0.
TEST_CASE("reports: a sink beside the scores takes its share of a softmax, however queries and heads are cut",
          "[regression][gradient]") {
  const sizes scores{4, 5, 6};
  for (const mesh_value& on : {workers(1), workers(2), workers(3), workers(2, 2)})
    CHECK(wrong_on(on, [&](const team_handle& t) {
            std::string said;
            for (const layout& x : ways(on, scores)) {
              if (x.levels(2) > 0) continue;  // a sink is one key more, which a cut of keys has no place for
              const layout sinks = lying_as(lying_as(lying(on, {4, 5, 1}), 0, x, 0), 1, x, 1);
              layout same_kind = sinks;
              for (int a = 0; a < x.placements.count; ++a)
                if (x.placements[a].kind == placement::invariant) same_kind.placements[a] = {placement::invariant};
              for (const double height : {0.0, 3.0, 30.0})
                said += beside(
                    t, {{x, values(scores)}, {same_kind, values({4, 1, 1}, 5).expand({4, 5, 1}).contiguous() + height}},
                    [](const auto& v) { return slice<2, 0, 6>(softmax<2>(concat<2>(v[0], v[1]))); },
                    [](const auto& v) { return at::cat({v[0], v[1]}, 2).softmax(2).slice(2, 0, 6); });
            }
            return said;
          }) == "");
}
