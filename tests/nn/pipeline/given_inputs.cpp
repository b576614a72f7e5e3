// Inputs of a pipeline are those of its network, or refused before anything runs.

#include "tests/support/stage_layouts.hpp"

#include <tessera/nn/network/program.hpp>
#include <tessera/nn/pipeline/pipeline_parallel.hpp>

namespace given_inputs {

using namespace tessera;
using namespace tessera::testing;
using pipeline::order;
using pipeline::schedule;

struct data : axis<2> {};
struct stage : axis<2> {};
using grid = mesh<data, stage>;
struct batch : dyn {};

template <int Stage>
using rows_on = partition<grid, blocks<data>, whole, on<stage, Stage>>;
using samples = tensor<rows_on<0>, shape<batch, dim<4>>, double>;
using targets = tensor<rows_on<1>, shape<batch, dim<3>>, double>;
struct classifier {
  constexpr auto operator()(auto x, auto y) const {
    const auto there = to<rows_on<1>>(tanh(x | nn::linear<4>{}));
    return mean(square((there | nn::linear<3>{}) - y));
  }
};
using typed = nn::network<classifier, samples, targets>;

/// A tensor with rows cut over data or not.
tensor<dyn> lies(const team<grid>& t, const at::Tensor& x, int on, bool cut = true) {
  layout where = on_stage(grid::value, x.sizes().vec(), on);
  if (!cut)
    where.set_placement(0, {placement::invariant}), where.dims[0] = dimension{}, where.dims[0].extent = x.size(0);
  return distribute(t, where, x);
}

template <class Net>
void judge(const Net& net, const team<grid>& t, std::string& wrong) {
  nn::pipeline_parallel pipeline(net, "stage", schedule{order::one_f_one_b, {2, 2}},
                                 {.rows = pipeline::micro_batch_sizes::uneven});
  const at::Tensor x = global_of({8, 4}, numbers{1}), y = global_of({8, 3}, numbers{2});
  const tensor<dyn> first = lies(t, x, 0), second = lies(t, y, 1);
  const auto refuses = [&](const char* what, const std::vector<tensor<dyn>>& given, const char* code) {
    const std::string both[]{told([&] { pipeline.forward_backward(given); }), told([&] { pipeline.forward(given); })};
    for (const std::string& one : both)
      if (one != code) wrong += fmt::format("{}: {}; ", what, one);
  };
  refuses("none", {}, "tessera.signature.operands");
  refuses("one more", {first, second, second}, "tessera.signature.operands");
  refuses("no tensor", {tensor<dyn>{}, second}, "tessera.tensor.undefined");
  refuses("another element", {lies(t, x.to(at::kFloat), 0), second}, "tessera.tensor.element");
  refuses("another extent", {lies(t, global_of({8, 5}, numbers{1}), 0), second}, "tessera.shape.extent");
  refuses("another stage", {lies(t, x, 1), second}, "tessera.tensor.partition");
  refuses("rows that are not cut", {lies(t, x, 0, false), lies(t, y, 1, false)}, "tessera.tensor.partition");
  net.each_parameter([&](const nn::parameter& p) {
    if (p.stored().local().grad().defined()) wrong += "a gradient; ";
  });
  const double loss = full_tensor(pipeline.forward_backward({first, second})[0]).template item<double>();
  const nn::state_dict now = nn::state_of(net);
  const at::Tensor h = at::tanh(at::linear(x, now.at("0.weight"), now.at("0.bias")));
  const at::Tensor wanted = at::mean(at::square(at::linear(h, now.at("1.weight"), now.at("1.bias")) - y));
  if (std::abs(loss - wanted.item<double>()) > 1e-12) wrong += "the loss behind; ";
}

TEST_CASE("inputs that are not those of the network are refused before anything runs", "[refusal]") {
  const auto out = in_team<grid>([](const team<grid>& t) {
    std::string wrong;
    judge(typed{t, seed{5}}, t, wrong);
    nn::program p;
    const auto x = p.input<samples>();
    const auto y = p.input<targets>();
    p.output(classifier{}(x, y));
    judge(nn::dynamic_network{t, seed{5}, p}, t, wrong);
    return wrong;
  });
  CHECK(out.errors() == "");
  for (const auto& one : out.results) CHECK(one.value_or("") == "");
}

}  // namespace given_inputs
