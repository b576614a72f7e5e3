// Stages that step their parameters by the schedule, beside LibTorch's optimizer on the whole network.

#include "tests/support/stepped_pipelines.hpp"
#include "tests/support/torch_training.hpp"

#include <atomic>
#include <chrono>
#include <thread>

namespace stepped {

using namespace tessera;
using namespace tessera::testing;
using pipeline::operation;
using pipeline::order;
using pipeline::schedule;
using pipeline::work;
using pipelined::stepping;

template <int P>
struct stage : axis<P> {};
template <int P>
struct data : axis<P> {};

template <class M, class Layer = nn::linear<5>, class First = Layer, class Schedule>
std::string differs(const Schedule& s, index_t rows, stepping how = stepping::own) {
  const auto out = in_team<M>(
      [&](const team<M>& t) { return pipelined::stepped_differently<Layer, First>(t.state(), s, rows, how); });
  std::string all = out.errors();
  for (const auto& one : out.results) all += one.value_or("");
  return all;
}

/// A list of one's own: all forwards, all backwards of inputs, all of weights, and a step.
struct own_list {
  std::vector<operation> list;
  std::vector<std::span<const operation>> views;
  pipeline::listed_schedule as;

  own_list(int stages, int micro_batches) {
    for (const work does : {work::forward, work::backward_of_inputs, work::backward_of_weights})
      for (int m = 0; m < micro_batches; ++m) list.push_back({does, m});
    list.push_back({work::step, 0});
    views.assign(static_cast<std::size_t>(stages), list);
    as = {{stages, micro_batches}, views};
  }
};

TEST_CASE("five steps of Adam by the schedule are those of the whole network", "[law][runtime][gradient]") {
  for (const stepping how : {stepping::own, stepping::all})
    for (const order by : {order::gpipe, order::one_f_one_b, order::zb_h1}) {
      CHECK(differs<mesh<stage<2>>>(schedule{by, {2, 4}, true}, 8, how) == "");
      CHECK(differs<mesh<stage<3>>>(schedule{by, {3, 2}, true}, 8, how) == "");
    }
  CHECK(differs<mesh<stage<1>>>(schedule{order::one_f_one_b, {1, 3}, true}, 9) == "");
  CHECK(differs<mesh<stage<2>>>(schedule{order::one_f_one_b, {2, 4}, true}, 10) == "");
  CHECK(differs<mesh<stage<2>>>(schedule{order::interleaved, {2, 5, 3}, true}, 10) == "");
  CHECK(differs<mesh<stage<3>>>(schedule{order::interleaved, {3, 6, 2}, true}, 12) == "");
  CHECK(differs<mesh<stage<2>>>(schedule{order::zb_v, {2, 4, 2, true}, true}, 8) == "");
  CHECK(differs<mesh<stage<3>>>(own_list(3, 4).as, 8) == "");
}

TEST_CASE("a stage steps when its workers have summed its gradients", "[law][runtime][gradient]") {
  using bundled = nn::bundled<nn::linear<5>>;
  using tiles = nn::sharded_over<nn::linear<5>, data<2>>;
  using held_tiles = nn::sharded_over<nn::linear<5>, data<2>, gathered<gathering::held>>;
  using grid = mesh<data<2>, stage<3>>;
  for (const order by : {order::one_f_one_b, order::zb_h1}) {
    const schedule s{by, {3, 5}, true};
    CHECK(differs<grid>(s, 11) == "");
    CHECK(differs<grid, bundled>(s, 11, stepping::all) == "");
    CHECK(differs<grid, tiles>(s, 11) == "");
    CHECK(differs<grid, held_tiles>(s, 11, stepping::all) == "");
  }
  CHECK(differs<mesh<data<3>, stage<2>>, bundled>(schedule{order::interleaved, {2, 3, 3}, true}, 11) == "");
  // the last backward of a stage is of a chunk that has nothing held
  const schedule chunks{order::interleaved, {2, 3, 2}, true};
  CHECK(differs<mesh<data<2>, stage<2>>, bundled, nn::linear<5>>(chunks, 8) == "");
  CHECK(differs<mesh<data<3>, stage<2>>, bundled>(schedule{order::zb_v, {2, 3, 2, true}, true}, 11) == "");
}

/// Two layers on two stages.
struct two_layers {
  using grid = mesh<stage<2>>;
  nn::program program;
  std::optional<nn::dynamic_network> net;
  std::vector<tensor<dyn>> given;

  explicit two_layers(const team_handle& t) {
    const auto x = program.input({on_stage(grid::value, {dynamic, 5}, 0), element::float64});
    const auto h = to(on_stage(grid::value, {dynamic, 5}, 1), tanh(nn::linear<5>{}(x)));
    program.output(mean(square(nn::linear<5>{}(h))));
    net.emplace(t, seed{5}, program);
    given.push_back(distribute(t, on_stage(grid::value, {8, 5}, 0), global_of({8, 5}, numbers{1})));
  }
};

TEST_CASE("a stage steps once a batch, behind its backwards, and the timeline shows it", "[runtime]") {
  using grid = two_layers::grid;
  const auto out = in_team<grid>([](const team<grid>& t) -> std::string {
    two_layers two(t.state());
    constexpr schedule s{order::one_f_one_b, {2, 4}, true};
    std::vector<nn::stage_pass> seen;
    nn::pipeline_options options;
    options.step = [&](const nn::stage_pass& now) {
      seen.push_back(now);
      for (const at::Tensor& w : two.net->parameters())
        if (w.numel() > 0 && !w.grad().defined()) throw std::runtime_error("a gradient is missing");
    };
    nn::pipeline_parallel pipeline(*two.net, "stage<2>", s, options);
    std::string wrong;
    pipeline.forward_backward(two.given);
    const auto all = pipeline.timeline();
    for (int stage = 0; stage < 2; ++stage) {
      const auto& mine = all[static_cast<std::size_t>(stage)];
      if (mine.size() != 9 || !(mine.back().does == operation{work::step, 3})) wrong += "timeline ";
    }
    pipeline.forward_backward(two.given, false);
    if (pipeline.timeline()[0].size() != 8) wrong += "a step in the middle of a window ";
    if (seen.size() != 1 || seen[0].stage != t.rank() || seen[0].micro_batch != 3) wrong += "passes ";
    return wrong;
  });
  CHECK(out.errors() == "");
  for (const auto& one : out.results) CHECK(one.value_or("") == "");
}

TEST_CASE("the last stage steps while the first one has a backward to run, also where they share a table",
          "[runtime]") {
  using grid = mesh<data<2>, stage<2>>;
  using table = nn::embedding<700, 64, weights_as<double>>;
  std::atomic<int> stepped_there = 0;
  const auto out = in_team<grid>([&](const team<grid>& t) -> std::string {
    nn::program p;
    const auto words = p.input({on_stage(grid::value, {dynamic}, 0), element::int64});
    const auto h = tanh(nn::linear<64>{}(words | nn::shared_under("table", table{})));
    const auto there = to(on_stage(grid::value, {dynamic, 64}, 1), h);
    p.output(mean(square(there | nn::shared_under("table", nn::linear<700, no_bias>{}))));
    nn::dynamic_network net(t, seed{5}, p);
    torch::optim::Adam optimizer(net.parameters(), 0.05);
    bool waited = false;
    nn::pipeline_options options;
    options.backward = [&](const nn::stage_pass& now, const auto& y, const auto& gradients) {
      if (now.stage == 0 && now.micro_batch == 3) {
        const auto began = std::chrono::steady_clock::now();
        while (stepped_there < 2 && std::chrono::steady_clock::now() - began < std::chrono::seconds(30))
          std::this_thread::yield();
        waited = stepped_there == 2;
      }
      torch::autograd::backward({y.begin(), y.end()}, {gradients.begin(), gradients.end()});
    };
    options.step = [&](const nn::stage_pass& now) {
      optimizer.step();
      stepped_there += now.stage == 1;
    };
    nn::pipeline_parallel pipeline(net, last_axis(grid::value), schedule{order::one_f_one_b, {2, 4}, true}, options);
    pipeline.forward_backward({distribute(t, on_stage(grid::value, {8}, 0), at::arange(8, at::kLong).remainder(7))});
    return waited == (t.rank() % 2 == 0) ? "" : "it waited";
  });
  CHECK(out.errors() == "");
  for (const auto& one : out.results) CHECK(one.value_or("") == "");
}

// A step behind the batch cannot change its outputs; one within it wrote into those that lay in a parameter's memory.
TEST_CASE("an output that is a parameter is that of before the step", "[regression]") {
  using grid = two_layers::grid;
  using number = tensor<partition<grid, on<stage<2>, 1>>, shape<>, double>;
  const auto out = in_team<grid>([](const team<grid>& t) -> std::string {
    nn::program p;
    const auto x = p.input({on_stage(grid::value, {dynamic, 5}, 0), element::float64});
    const auto h = to(on_stage(grid::value, {dynamic, 5}, 1), tanh(nn::linear<5>{}(x)));
    const auto factor = h | nn::named<struct scale, nn::weight<number>>{};
    p.output(mean(square(h * factor)));
    p.output(factor);
    nn::dynamic_network net(t, seed{5}, p);
    torch::optim::SGD optimizer(net.parameters(), 0.5);
    nn::pipeline_options options;
    options.step = [&](const nn::stage_pass&) { optimizer.step(); };
    nn::pipeline_parallel pipeline(net, "stage<2>", schedule{order::one_f_one_b, {2, 2}, true}, options);
    nn::state_dict state = nn::state_of(net);
    state["scale"] = at::scalar_tensor(2.0, at::kDouble);
    nn::assign(net, state);
    const auto given = distribute(t, on_stage(grid::value, {8, 5}, 0), global_of({8, 5}, numbers{1}));
    const double before = full_tensor(pipeline.forward_backward({given})[1]).item<double>();
    const double behind = nn::state_of(net).at("scale").item<double>();
    if (before != 2 || behind == 2) return fmt::format("{} and then {} ", before, behind);
    return "";
  });
  CHECK(out.errors() == "");
  for (const auto& one : out.results) CHECK(one.value_or("") == "");
}

TEST_CASE("steps without a function, and a function without steps, are refused", "[refusal]") {
  using grid = two_layers::grid;
  const auto told_with = [](bool steps, bool function) {
    const auto out = in_team<grid>([&](const team<grid>& t) {
      return told([&] {
        two_layers two(t.state());
        nn::pipeline_options options;
        if (function) options.step = [](const nn::stage_pass&) {};
        nn::pipeline_parallel pipeline(*two.net, "stage<2>", schedule{order::gpipe, {2, 2}, steps}, options);
      });
    });
    return out.results[0].value_or("nothing") + " " + out.results[1].value_or("nothing");
  };
  CHECK(told_with(false, false) == "none none");
  CHECK(told_with(true, true) == "none none");
  CHECK(told_with(true, false) == "tessera.pipeline.steps tessera.pipeline.steps");
  CHECK(told_with(false, true) == "tessera.pipeline.steps tessera.pipeline.steps");
}

TEST_CASE("a step that fails ends all workers with its stage and micro-batch", "[refusal]") {
  using grid = two_layers::grid;
  const auto out = in_team<grid>([](const team<grid>& t) {
    two_layers two(t.state());
    nn::pipeline_options options;
    options.step = [](const nn::stage_pass& now) {
      if (now.stage == 1) throw std::runtime_error("no step today");
    };
    nn::pipeline_parallel pipeline(*two.net, "stage<2>", schedule{order::one_f_one_b, {2, 4}, true}, options);
    pipeline.forward_backward(two.given);
    pipeline.timeline();
    return 0;
  });
  for (const char* part : {"worker 1: [tessera.pipeline.failed]", "(stage 1, micro-batch 3)", "step: no step today"})
    CHECK_THAT(out.errors(), Catch::Matchers::Contains(part));
}

}  // namespace stepped
