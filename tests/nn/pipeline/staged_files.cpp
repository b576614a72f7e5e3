// Networks from files whose nodes are shared out over stages, beside LibTorch: inputs on any stage, constants, and
// parts that are recomputed and read values of earlier stages.

#include "tests/support/stage_layouts.hpp"

#include <tessera/nn/file/network_file.hpp>
#include <tessera/nn/pipeline/pipeline_parallel.hpp>

namespace staged_files {

using namespace tessera;
using namespace tessera::testing;
using pipeline::order;
using pipeline::schedule;

struct data : axis<2> {};
template <int S>
struct stage : axis<S> {};
template <int S>
using grid = mesh<data, stage<S>>;

/// A network of inputs "x" [rows, 5] on the first stage and "y" [rows, 3] where it is said, and its loss "loss".
template <int S>
std::string text_of(const std::string& y_lies, const std::string& by, const std::string& nodes) {
  std::string all = R"({"inputs": [
   {"name": "x", "shape": ["rows", 5], "element": "double", "dims": [{"blocks": ["data"]}, {"whole": true}],
    "meaning": {"STAGE": {"on": 0}}},
   {"name": "y", "shape": ["rows", 3], "element": "double", "dims": [{"blocks": ["data"]}, {"whole": true}],
    "meaning": {Y}}],
   "stages": {"axis": "STAGE", "by": "BY"}, "nodes": [NODES, {"name": "loss", "of": ["out", "y"], "function":
   "mse_loss"}], "outputs": ["loss"]})";
  const auto put = [&](const std::string& word, const std::string& is) {
    for (std::size_t at = 0; (at = all.find(word)) != all.npos;) all.replace(at, word.size(), is);
  };
  put("NODES", nodes);
  put("BY", by);
  put("Y", y_lies);
  put("STAGE", fmt::format("stage<{}>", S));
  return all;
}

using weights = std::map<std::string, at::Tensor>;
at::Tensor linear(const at::Tensor& x, const weights& w, const std::string& at) {
  return at::linear(x, w.at(at + ".weight"), w.at(at + ".bias"));
}

/// What differs in loss and gradients, called as a network and as a pipeline.
template <int S, class Serial>
std::string differs(const std::string& text, const Serial& serial) {
  const auto out = in_team<grid<S>>([&](const team<grid<S>>& t) -> std::string {
    const at::Tensor x = global_of({7, 5}, numbers{1}), y = global_of({7, 3}, numbers{2});
    nn::program p;
    nn::read_network(p, text, grid<S>::value, "network.json");
    const nn::dynamic_network net{t, seed{3}, p};
    weights w;
    for (const auto& [key, one] : nn::state_of(net)) w[key] = one.clone().requires_grad_();
    const at::Tensor loss = at::mse_loss(serial(x, w), y);
    loss.backward();
    std::vector<tensor<dyn>> given;
    for (std::size_t i = 0; i < 2; ++i) {
      layout lies = net.inputs()[i].is.layout;
      lies.dims[0].extent = 7;
      given.push_back(distribute(t, lies, i == 0 ? x : y));
    }
    std::string wrong;
    const auto judge = [&](const char* where, const tensor<dyn>& found) {
      if (std::abs(full_tensor(found).template item<double>() - loss.item<double>()) > 1e-12)
        wrong += fmt::format("the loss {}; ", where);
      net.each_parameter([&](const nn::parameter& q) {
        if (!at::allclose(full_tensor(q.stored().grad()), w.at(q.path()).grad(), 1e-12, 1e-12))
          wrong += fmt::format("{} {}; ", q.path(), where);
        q.stored().local().mutable_grad().reset();
      });
    };
    const auto plain = net(given);
    plain[0].backward();
    judge("of the network", plain[0]);
    nn::pipeline_parallel pipeline(net, last_axis(grid<S>::value), schedule{order::one_f_one_b, {S, 3}},
                                   {.rows = pipeline::micro_batch_sizes::uneven});
    judge("of the pipeline", pipeline.forward_backward(given)[0]);
    return wrong;
  });
  std::string all = out.errors();
  for (const auto& one : out.results) all += one.value_or("");
  return all;
}

template <int S, class Serial>
void judge(const std::string& nodes, const Serial& serial, const std::string& y_lies = "") {
  for (const char* by : {"count", "parameters", "memory", "time"}) {
    INFO(by);
    CHECK(differs<S>(text_of<S>(y_lies, by, nodes), serial) == "");
  }
}

TEST_CASE("inputs of a network that is shared out lie on any stage, or on all", "[regression][gradient]") {
  const std::string nodes = R"(
    {"name": "a", "of": "x", "layer": "linear", "out_features": 6}, {"name": "b", "of": "a", "function": "tanh"},
    {"name": "c", "of": "b", "layer": "linear", "out_features": 6}, {"name": "d", "of": "c", "function": "sin"},
    {"name": "out", "of": "d", "layer": "linear", "out_features": 3})";
  const auto serial = [](const at::Tensor& x, const weights& w) {
    return linear(at::sin(linear(at::tanh(linear(x, w, "0")), w, "1")), w, "2");
  };
  judge<2>(nodes, serial);
  judge<2>(nodes, serial, R"("STAGE": {"on": 1})");
  judge<3>(nodes, serial, R"("STAGE": {"on": 2})");
}

TEST_CASE("a constant lies on the stage of what it meets", "[regression][gradient]") {
  const std::string nodes = R"(
    {"name": "a", "of": "x", "layer": "linear", "out_features": 3},
    {"name": "k", "of": "a", "layer": "constant", "shape": [3], "element": "double", "dims": [{"whole": true}],
     "values": [1, 2, 3]},
    {"name": "b", "of": ["a", "k"], "function": "mul"},
    {"name": "c", "of": "b", "layer": "linear", "out_features": 3},
    {"name": "out", "of": ["c", "k"], "function": "add"})";
  const auto serial = [](const at::Tensor& x, const weights& w) {
    const at::Tensor k = at::tensor({1.0, 2.0, 3.0}, at::kDouble);
    return linear(linear(x, w, "0") * k, w, "2") + k;
  };
  judge<2>(nodes, serial, R"("STAGE": {"on": 1})");
  judge<3>(nodes, serial, R"("STAGE": {"on": 2})");
}

TEST_CASE("neighbours that are recomputed read values of earlier stages", "[regression][gradient]") {
  const std::string nodes = R"(
    {"name": "a", "of": "x", "layer": "linear", "out_features": 6}, {"name": "b", "of": "a", "function": "tanh"},
    {"name": "c", "of": "b", "layer": "linear", "out_features": 6, "recompute": "r"},
    {"name": "d", "of": ["c", "a"], "function": "mul", "recompute": "r"},
    {"name": "e", "of": ["d", "b"], "function": "add", "recompute": "r"},
    {"name": "out", "of": "e", "layer": "linear", "out_features": 3})";
  const auto serial = [](const at::Tensor& x, const weights& w) {
    const at::Tensor a = linear(x, w, "0"), b = at::tanh(a);
    return linear(linear(b, w, "1") * a + b, w, "2");
  };
  judge<2>(nodes, serial, R"("STAGE": {"on": 0})");
  judge<3>(nodes, serial, R"("STAGE": {"on": 0})");
}

// A bundle of one stage was counted among what all workers bring in: the next batch was another one on each stage.
TEST_CASE("stages that sum different numbers of bundles bring in the same batches", "[regression]") {
  for (const char* times : {"held", "bundled"}) {
    const std::string nodes = fmt::format(R"(
      {{"name": "a", "of": "x", "layer": "linear", "out_features": 6, "sharded_over": ["data"], "gathered": "{}"}},
      {{"name": "b", "of": "a", "function": "tanh"}},
      {{"name": "out", "of": "b", "layer": "linear", "out_features": 3}})",
                                          times);
    launch_options options = threads_only();
    options.checks = checks::always;
    const auto out = in_team<grid<2>>(
        [&](const team<grid<2>>& t) {
          nn::program p;
          nn::read_network(p, text_of<2>(R"("STAGE": {"on": 1})", "count", nodes), grid<2>::value, "network.json");
          const nn::dynamic_network net{t, seed{3}, p};
          nn::pipeline_parallel pipeline(net, "stage<2>", schedule{order::one_f_one_b, {2, 2}},
                                         {.rows = pipeline::micro_batch_sizes::uneven});
          const at::Tensor x = global_of({7, 5}, numbers{1}), y = global_of({7, 3}, numbers{2});
          std::string losses;
          for (int step = 0; step < 3; ++step) {
            const std::vector<tensor<dyn>> given{distribute(t, on_stage(grid<2>::value, {7, 5}, 0), x),
                                                 distribute(t, on_stage(grid<2>::value, {7, 3}, 1), y)};
            losses += fmt::format("{:.9f} ", full_tensor(pipeline.forward_backward(given)[0]).template item<double>());
          }
          return losses;
        },
        options);
    INFO(times << " " << out.errors());
    REQUIRE(out.well());
    for (int r = 0; r < 4; ++r) CHECK(out.of(r) == out.of(0));
  }
}

}  // namespace staged_files
