// Stages that a network is given, as a type, of values and from a file, beside LibTorch: losses and gradients.

#include "tests/support/tensors.hpp"

#include <tessera/nn/file/network_file.hpp>
#include <tessera/nn/pipeline/pipeline_parallel.hpp>
#include <tessera/operation/network/staged.hpp>

namespace staged_runs {

using namespace tessera;
using namespace tessera::testing;
using pipeline::share;

struct data : axis<2> {};
struct stage : axis<3> {};
struct rows : dyn {};

template <index_t N>
using layer = nn::linear<N>;

/// Two workers of a stage share rows.
struct places {
  using grid = mesh<data, stage>;
  using input = tensor<partition<grid, blocks<data>, whole, on<stage, 0>>, shape<rows, dim<5>>, double>;
};

/// Losses and gradients in a pipeline, beside LibTorch's of the whole batch.
std::string differs(const auto& t, const auto& net, const pipeline::schedule& s, const std::vector<std::string>& linears) {
  const at::Tensor x = global_of({24, 5}, numbers{1});
  std::map<std::string, at::Tensor> w;
  for (const auto& [key, one] : nn::state_of(net)) w[key] = one.clone().requires_grad_();
  at::Tensor h = x;
  for (const std::string& at : linears)
    h = at::relu(at::linear(h, w.at(at + ".weight"), w.at(at + ".bias")));
  const at::Tensor loss = h.square().mean();
  loss.backward();
  nn::pipeline_parallel pipeline(net, "stage", s);
  layout lies = value_of<places::input>.layout;
  lies.dims[0].extent = 24;
  const tensor<dyn> got = pipeline.forward_backward({distribute(t, lies, x)})[0];
  std::string wrong = std::abs(full_tensor(got).template item<double>() - loss.item<double>()) > 1e-12 ? "the loss " : "";
  net.each_parameter([&](const nn::parameter& q) {
    const at::Tensor off = full_tensor(q.stored().grad()) - w.at(q.path()).grad();
    if (off.abs().max().template item<double>() > 1e-12) wrong += q.path() + " ";
  });
  return wrong;
}

struct mean_square {
  constexpr auto operator()(auto x) const { return mean(square(x)); }
};

const char* const as_file = R"({
 "inputs": [{"name": "x", "shape": ["rows", 5], "element": "double",
             "dims": [{"blocks": ["data"]}, {"whole": true}], "meaning": {"stage": {"on": 0}}}],
 "stages": {"axis": "stage", "by": "parameters", "chunks": 2},
 "nodes": [{"name": "a", "of": "x", "layer": "linear", "out_features": 8},
           {"name": "b", "of": "a", "layer": "relu"},
           {"name": "c", "of": "b", "layer": "linear", "out_features": 8},
           {"name": "d", "of": "c", "layer": "relu"},
           {"name": "e", "of": "d", "layer": "linear", "out_features": 8},
           {"name": "f", "of": "e", "layer": "relu"},
           {"name": "g", "of": ["f", "f"], "function": "sub"},
           {"name": "h", "of": ["f", "g"], "function": "mse_loss"}],
 "outputs": ["h"]})";

TEST_CASE("a staged network trains in a pipeline as the serial one, as a type, of values and from a file",
          "[law][runtime][gradient]") {
  using nn::chain;
  using nn::relu;
  using pipeline::order;
  using model = chain<layer<8>, relu, layer<8>, relu, layer<8>, relu, mean_square>;
  const auto out = in_team<places::grid>([](const team<places::grid>& t) -> std::string {
    const std::vector<std::string> linears{"0", "2", "4"};
    const pipeline::schedule turns{order::one_f_one_b, {3, 4}}, chunks{order::interleaved, {3, 6, 2}};
    std::string wrong;
    const nn::network<nn::staged<model, stage>, places::input> typed{t, seed{3}};
    wrong += differs(t, typed, turns, linears);
    const nn::network<nn::staged<model, stage, nn::chunks<2>>, places::input> twice{t, seed{3}};
    wrong += differs(t, twice, chunks, linears);
    const nn::network<nn::staged<model, stage, nn::chunks<2>, nn::turning>, places::input> back{t, seed{3}};
    wrong += differs(t, back, {order::zb_v, {3, 4, 2, true}}, linears);
    for (const share by : {share::count, share::parameters, share::memory}) {
      nn::program p;
      const auto module = [](const nn::dynamic_flow& x) {
        return mean(square(x | layer<8>{} | relu{} | layer<8>{} | relu{} | layer<8>{} | relu{}));
      };
      p.output(p.input<places::input>() | nn::in_stages("stage", module, {.by = by, .chunks = 2}));
      const nn::dynamic_network made{t, seed{3}, p};
      wrong += differs(t, made, chunks, {"0.0", "0.2", "0.4"});
    }
    nn::program same;  // parts of a chain, as the compiler shares them out
    same.output(same.input<places::input>() | nn::staged<model, stage, nn::chunks<2>, nn::turning>{});
    const nn::dynamic_network parts{t, seed{3}, same};
    wrong += differs(t, parts, {order::zb_v, {3, 4, 2, true}}, {"0.0", "0.2", "0.4"});
    nn::program file;
    nn::read_network(file, as_file, places::grid::value, "network.json");
    const nn::dynamic_network read{t, seed{3}, file};
    wrong += differs(t, read, chunks, linears);
    return wrong;
  });
  CHECK(out.errors() == "");
  for (const auto& one : out.results) CHECK(one.value_or("") == "");
}

}  // namespace staged_runs
