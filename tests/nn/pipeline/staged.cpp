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
std::string differs(const auto& t, const auto& net, const pipeline::schedule& s,
                    const std::vector<std::string>& linears) {
  const at::Tensor x = global_of({24, 5}, numbers{1});
  std::map<std::string, at::Tensor> w;
  for (const auto& [key, one] : nn::state_of(net)) w[key] = one.clone().requires_grad_();
  at::Tensor h = x;
  for (const std::string& at : linears) h = at::relu(at::linear(h, w.at(at + ".weight"), w.at(at + ".bias")));
  const at::Tensor loss = h.square().mean();
  loss.backward();
  nn::pipeline_parallel pipeline(net, "stage", s);
  layout lies = value_of<places::input>.layout;
  lies.dims[0].extent = 24;
  const tensor<dyn> got = pipeline.forward_backward({distribute(t, lies, x)})[0];
  std::string wrong =
      std::abs(full_tensor(got).template item<double>() - loss.item<double>()) > 1e-12 ? "the loss " : "";
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
    for (const share by : {share::count, share::parameters, share::memory, share::time}) {
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

/// The multiply-adds of each stage of three, and how many nodes are on it.
std::vector<std::pair<index_t, int>> on_stages(const nn::program& p, index_t rows_of) {
  std::vector<std::pair<index_t, int>> all(3);
  const auto program = p.finish();
  for (const auto& node : program.view) {
    layer_plan plan = node.record->plan();
    const int axis = plan.output().mesh.find(engine::short_name_of<stage>());
    auto& here = all[static_cast<std::size_t>(plan.output().placements[axis].coordinate)];
    bind_rows(plan, rows_of);
    const index_t work = arithmetic_of(plan, node.record->elements).of_a_worker();
    if (work > 0) here.first += work, ++here.second;
  }
  return all;
}

const char* const by_time = R"({
 "inputs": [{"name": "x", "shape": ["rows", 5], "element": "double",
             "dims": [{"blocks": ["data"]}, {"whole": true}], "meaning": {"stage": {"on": 0}}}],
 "stages": {"axis": "stage", "by": "time", "rows": 10},
 "nodes": [{"name": "a", "of": "x", "layer": "linear", "out_features": 30},
           {"name": "b", "of": "a", "layer": "linear", "out_features": 4},
           {"name": "c", "of": "b", "layer": "relu"},
           {"name": "d", "of": "c", "layer": "linear", "out_features": 40},
           {"name": "e", "of": "d", "layer": "linear", "out_features": 12},
           {"name": "f", "of": "e", "layer": "linear", "out_features": 3}],
 "outputs": ["f"]})";

TEST_CASE("nodes are shared out so that the most arithmetic of a stage is least of all cuts", "[law]") {
  // five rows on the larger of two workers of a stage; forward once and backward twice, a relu one element each way
  std::vector<index_t> each;
  const index_t widths[]{5, 30, 4, 40, 12, 3};
  for (int i = 0; i < 5; ++i) {
    each.push_back(3 * 5 * widths[i] * widths[i + 1]);
    if (i == 1) each.push_back(2 * 5 * 4);
  }
  index_t least = INT64_MAX;
  for (std::size_t first = 1; first < 5; ++first)
    for (std::size_t second = first + 1; second < 6; ++second) {
      index_t sums[3]{};
      for (std::size_t i = 0; i < 6; ++i) sums[i < first ? 0 : i < second ? 1 : 2] += each[i];
      least = std::min(least, std::max({sums[0], sums[1], sums[2]}));
    }
  const auto module = [](const nn::dynamic_flow& x) {
    return x | layer<30>{} | layer<4>{} | nn::relu{} | layer<40>{} | layer<12>{} | layer<3>{};
  };
  nn::program values, file, serial;
  values.output(values.input<places::input>() | nn::in_stages("stage", module, {.by = share::time, .rows = 10}));
  nn::read_network(file, by_time, places::grid::value, "network.json");
  for (const nn::program* p : {&values, &file}) {
    index_t most = 0, all = 0;
    int nodes = 0;
    for (const auto& [work, count] : on_stages(*p, 10)) {
      most = std::max(most, work);
      all += work;
      nodes += count;
    }
    CHECK(most == least);
    CHECK(nodes == 6);
    CHECK(p->multiply_adds(10).of_a_worker() == all);
    CHECK(p->multiply_adds(10).forward.total == 10 * (5 * 30 + 30 * 4 + 4 * 40 + 40 * 12 + 12 * 3));
  }
}

const char* const recomputed = R"({
 "inputs": [{"name": "x", "shape": ["rows", 5], "element": "double",
             "dims": [{"blocks": ["data"]}, {"whole": true}], "meaning": {"stage": {"on": 0}}}],
 "stages": {"axis": "stage", "by": "time", "rows": 8},
 "nodes": [{"name": "a", "of": "x", "layer": "linear", "out_features": 40, "recompute": "first"},
           {"name": "b", "of": "a", "layer": "linear", "out_features": 8, "recompute": "first"},
           {"name": "c", "of": "b", "layer": "linear", "out_features": 10},
           {"name": "d", "of": "c", "layer": "linear", "out_features": 60},
           {"name": "e", "of": "d", "layer": "linear", "out_features": 5}],
 "outputs": ["e"]})";

TEST_CASE("what is recomputed takes its forward once more, as a stage of a program too", "[law]") {
  using two = nn::chain<layer<40>, layer<8>>;  // 520 multiply-adds a row, then 80, 600 and 300
  const auto nodes = []<class First>(std::type_identity<First>) {
    const auto module = [](const nn::dynamic_flow& x) { return x | First{} | layer<10>{} | layer<60>{} | layer<5>{}; };
    nn::program p;
    p.output(p.input<places::input>() | nn::in_stages("stage", module, {.by = share::time, .rows = 8}));
    std::vector<int> all;
    for (const auto& [work, count] : on_stages(p, 8)) all.push_back(count);
    return all;
  };
  CHECK(nodes(std::type_identity<nn::recompute<two>>{}) == std::vector<int>{2, 2, 1});
  CHECK(nodes(std::type_identity<two>{}) == std::vector<int>{3, 1, 1});
  nn::program file;
  nn::read_network(file, recomputed, places::grid::value, "network.json");
  std::vector<int> of_file;
  for (const auto& [work, count] : on_stages(file, 8)) of_file.push_back(count);
  CHECK(of_file == std::vector<int>{2, 2, 1});
  nn::program p;
  p.output(p.input<places::input>() | nn::recompute<two>{} | layer<10>{});
  CHECK(p.multiply_adds(2).backward.total == 2 * p.multiply_adds(2).forward.total + 2 * 520);
}

TEST_CASE("more multiply-adds of a program than can be counted are refused", "[refusal]") {
  nn::program p;
  p.output(p.input<places::input>() | layer<40>{});
  CHECK_THROWS_WITH(p.multiply_adds(INT64_MAX / 2), Catch::Matchers::Contains("tessera.cost.overflow"));
}

struct model : axis<2> {};
struct half : axis<2> {};
using beside = mesh<model, half>;

TEST_CASE("a boundary that is crossed in shares trains alike, and each worker gets no more",
          "[law][runtime][gradient]") {
  using input = tensor<partition<beside, whole, whole, on<half, 0>>, shape<rows, dim<5>>, double>;
  using chain = nn::chain<layer<8>, nn::relu, layer<8>, mean_square>;
  const auto out = in_team<beside>([](const team<beside>& t) -> std::string {
    const auto run = [&](const auto& net, index_t& bytes) {
      nn::pipeline_parallel pipeline(net, "half", pipeline::schedule{pipeline::order::one_f_one_b, {2, 4}});
      layout lies = value_of<input>.layout;
      lies.dims[0].extent = 12;
      const std::vector<tensor<dyn>> given{distribute(t, lies, global_of({12, 5}, numbers{1}))};
      pipeline.forward_backward(given);
      for (const at::Tensor& w : net.parameters()) w.mutable_grad().reset();
      const index_t before = t.state()->total.bytes;
      const tensor<dyn> loss = pipeline.forward_backward(given)[0];
      bytes = t.state()->total.bytes - before;
      std::map<std::string, at::Tensor> all{{"loss", full_tensor(loss)}};
      net.each_parameter([&](const nn::parameter& q) { all[q.path()] = full_tensor(q.stored().grad()); });
      return all;
    };
    nn::program p;
    p.output(nn::staged<chain, half, nn::through_shards<model>>{}(p.input<input>()));
    index_t whole = 0, shares = 0, values = 0;
    const auto a = run(nn::network<nn::staged<chain, half>, input>{t, seed{3}}, whole);
    const auto b = run(nn::network<nn::staged<chain, half, nn::through_shards<model>>, input>{t, seed{3}}, shares);
    const auto c = run(nn::dynamic_network{t, seed{3}, p}, values);
    std::string wrong;
    for (const auto& [key, one] : a) {
      if ((one - b.at(key)).abs().max().template item<double>() > 1e-13) wrong += key + " ";
      if ((one - c.at(key)).abs().max().template item<double>() > 1e-13) wrong += "of values " + key + " ";
    }
    // the second stage gets 12 × 8 numbers either way, and sums gradients of 72 weights in each micro-batch; terms of
    // the gradient that goes back are summed before it does
    const index_t all = 12 * 8 * 8 + 4 * 72 * 8, summed = 12 * 4 * 8;
    if (t.rank() % 2 == 1 && (whole != all || shares != all + summed || values != shares))
      wrong += fmt::format("{}, {} and {} bytes ", whole, shares, values);
    return wrong;
  });
  CHECK(out.errors() == "");
  for (const auto& one : out.results) CHECK(one.value_or("") == "");
}

/// What a worker is told of a module that is shared out so.
std::string refused(const std::string& axis, const nn::stage_options& how) {
  const auto out = in_team<places::grid>([&](const team<places::grid>&) {
    return told([&] {
      nn::program p;
      const auto module = [](const nn::dynamic_flow& x) { return mean(square(x | layer<8>{} | nn::relu{})); };
      p.output(p.input<places::input>() | nn::in_stages(axis, module, how));
    });
  });
  std::string all = out.results[0].value_or("nothing");
  for (const auto& one : out.results)
    if (one.value_or("nothing") != all) all += ", " + one.value_or("nothing");
  return all;
}

TEST_CASE("what cannot be shared out to stages is refused by code", "[refusal]") {
  CHECK(refused("stage", {}) == "none");
  CHECK(refused("stages", {}) == "tessera.partition.axis");
  CHECK(refused("stage", {.chunks = 2}) == "tessera.pipeline.stages");
  CHECK(refused("stage", {.chunks = 0}) == "tessera.pipeline.empty");
  CHECK(refused("stage", {.by = share::sizes, .given = {2, 2}}) == "tessera.pipeline.sizes");
  CHECK(refused("stage", {.by = share::weights, .given = {1, 2, 3}}) == "tessera.pipeline.sizes");
  CHECK(refused("stage", {.through = "models"}) == "tessera.partition.axis");
  CHECK(refused("stage", {.through = "stage"}) == "tessera.partition.twice");
}

}  // namespace staged_runs
