// Forwards and backwards of one's own in a pipeline, beside LibTorch's of the same functions in one process.

#include "tests/support/stage_layouts.hpp"

#include <tessera/nn/network/program_parts.hpp>
#include <tessera/nn/pipeline/pipeline_parallel.hpp>

namespace own_functions {

using namespace tessera;
using namespace tessera::testing;
using pipeline::order;
using pipeline::schedule;

struct data : axis<2> {};
struct stage : axis<2> {};
using grid = mesh<data, stage>;
using alone = mesh<stage>;

/// A layer, a way past it, a second input of the second stage, and the mean square.
template <class G>
void build(nn::program& p) {
  const auto x = p.input({on_stage(G::value, {dynamic, 5}, 0), element::float64});
  const auto beside = p.input({on_stage(G::value, {dynamic, 5}, 1), element::float64});
  const auto h = tanh(nn::linear<5>{}(x));
  const auto there = to(on_stage(G::value, {dynamic, 5}, 1), h), past = to(on_stage(G::value, {dynamic, 5}, 1), sin(x));
  p.output(mean(square(nn::linear<5>{}(there) + past * beside)));
}

struct trained {
  double loss;
  std::map<std::string, at::Tensor> gradients;
};

template <class G>
trained in_pipeline(const team<G>& t, order by, nn::pipeline_options options, bool by_nodes = true) {
  nn::program p;
  build<G>(p);
  nn::dynamic_network net(t, seed{5}, p);
  nn::pipeline_parallel pipeline(net, "stage", schedule{by, {2, 3}}, std::move(options));
  const std::vector<tensor<dyn>> given{distribute(t, on_stage(G::value, {12, 5}, 0), global_of({12, 5}, numbers{1})),
                                       distribute(t, on_stage(G::value, {12, 5}, 1), global_of({12, 5}, numbers{2}))};
  trained all{full_tensor(pipeline.forward_backward(given)[0]).item<double>(), {}};
  if (by_nodes)
    net.each_parameter([&](const nn::parameter& q) { all.gradients[q.path()] = full_tensor(q.stored().grad()); });
  return all;
}

std::string far(const trained& a, const trained& b, double times = 1) {
  std::string wrong = std::abs(a.loss - b.loss) > 1e-12 ? "the loss " : "";
  for (const auto& [key, g] : a.gradients)
    if ((g - b.gradients.at(key) * times).abs().max().item<double>() > 1e-12) wrong += key + " ";
  return wrong;
}

TEST_CASE("a forward and a backward of one's own run in place of a stage's", "[law][runtime][gradient]") {
  const auto out = in_team<grid>([](const team<grid>& t) -> std::string {
    std::string wrong;
    for (const order by : {order::gpipe, order::one_f_one_b, order::zb_h1}) {
      const trained plain = in_pipeline(t, by, {});
      std::vector<std::array<int, 2>> forwards, backwards;
      nn::pipeline_options around;
      around.forward = [&](const nn::stage_pass& now, const auto& came, const auto& run) {
        forwards.push_back({now.stage, now.micro_batch});
        if (came.size() != (now.stage == 0 ? 1u : 3u)) wrong += "what came ";
        const auto given = run(came);
        if (given.size() != (now.stage == 0 ? 2u : 1u)) wrong += "what leaves ";
        return given;
      };
      around.backward = [&](const nn::stage_pass& now, const auto& y, const auto& gradients) {
        backwards.push_back({now.stage, now.micro_batch});
        torch::autograd::backward({y.begin(), y.end()}, {gradients.begin(), gradients.end()});
      };
      wrong += far(in_pipeline(t, by, around), plain);
      const std::vector<std::array<int, 2>> each{{t.rank() % 2, 0}, {t.rank() % 2, 1}, {t.rank() % 2, 2}};
      if (forwards != each || backwards != each) wrong += "passes ";
      nn::pipeline_options twice;  // gradients twice as large where they enter the first stage
      twice.backward = [](const nn::stage_pass& now, const auto& y, std::vector<at::Tensor> gradients) {
        if (now.stage == 0)
          for (at::Tensor& g : gradients) g = g * 2;
        torch::autograd::backward({y.begin(), y.end()}, gradients);
      };
      trained halved = in_pipeline(t, by, twice);
      for (const char* key : {"0.weight", "0.bias"}) halved.gradients[key] /= 2;
      wrong += far(halved, plain);
    }
    return wrong;
  });
  CHECK(out.errors() == "");
  for (const auto& one : out.results) CHECK(one.value_or("") == "");
}

TEST_CASE("a stage computes what a function says that knows no network", "[law][runtime][gradient]") {
  const auto out = in_team<alone>([](const team<alone>& t) -> std::string {
    const at::Tensor w = global_of({5, 5}, numbers{3}).requires_grad_();
    nn::pipeline_options own;
    own.forward = [&](const nn::stage_pass& now, const auto& came, const auto&) -> std::vector<at::Tensor> {
      if (now.stage == 0) return {at::mm(came[0], w).sin(), came[0].cos()};
      return {(came[0] - came[1] * came[2]).square().mean()};
    };
    const trained got = in_pipeline(t, order::one_f_one_b, own, false);
    const at::Tensor serial = w.detach().clone().requires_grad_();
    const at::Tensor x = global_of({12, 5}, numbers{1}), y = global_of({12, 5}, numbers{2});
    const at::Tensor loss = (at::mm(x, serial).sin() - x.cos() * y).square().mean();
    loss.backward();
    std::string wrong;
    if (std::abs(got.loss - loss.item<double>()) > 1e-12) wrong += fmt::format("loss {} ", got.loss);
    if (t.rank() == 0 && (w.grad() - serial.grad()).abs().max().item<double>() > 1e-12) wrong += "gradient ";
    return wrong;
  });
  CHECK(out.errors() == "");
  for (const auto& one : out.results) CHECK(one.value_or("") == "");
}

TEST_CASE("a forward of one's own that gives too little is refused", "[refusal]") {
  const auto out = in_team<grid>([](const team<grid>& t) {
    nn::pipeline_options own;
    own.forward = [&](const nn::stage_pass&, const auto&, const auto&) { return std::vector<at::Tensor>{}; };
    static_cast<void>(in_pipeline(t, order::gpipe, own));
    return 0;
  });
  CHECK_THAT(out.errors(), Catch::Matchers::Contains("[tessera.pipeline.own]"));
}

}  // namespace own_functions
