// Networks in pipelines, by schedules of each kind.

#include "tests/support/pipelines.hpp"

namespace pipelined {

template <int P>
struct stage : axis<P> {};
template <int P>
struct data : axis<P> {};

template <class M, class Schedule>
std::string differs(const Schedule& schedule, index_t rows, bool uneven = false) {
  const auto out = in_team<M>([&](const team<M>& t) { return differs(t.state(), schedule, rows, uneven); });
  std::string all = out.errors();
  for (const auto& one : out.results) all += one.value_or("");
  return all;
}

TEST_CASE("a pipeline's losses and gradients are those of the network", "[law][runtime][gradient]") {
  using pipeline::order;
  using pipeline::schedule;
  CHECK(differs<mesh<stage<1>>>(schedule{order::one_f_one_b, {1, 3}}, 9) == "");
  CHECK(differs<mesh<stage<2>>>(schedule{order::gpipe, {2, 4}}, 8) == "");
  CHECK(differs<mesh<stage<2>>>(schedule{order::one_f_one_b, {2, 4}}, 8) == "");
  CHECK(differs<mesh<stage<2>>>(schedule{order::one_f_one_b, {2, 4}}, 10, true) == "");
  CHECK(differs<mesh<stage<3>>>(schedule{order::one_f_one_b, {3, 2}}, 8) == "");
  CHECK(differs<mesh<stage<3>>>(schedule{order::interleaved, {3, 6, 2}}, 12) == "");
  CHECK(differs<mesh<stage<2>>>(schedule{order::interleaved, {2, 5, 3}}, 10) == "");
  CHECK(differs<mesh<stage<2>>>(schedule{order::zb_h1, {2, 4}}, 8) == "");
  CHECK(differs<mesh<stage<3>>>(schedule{order::zb_h1, {3, 2}}, 8) == "");
  CHECK(differs<mesh<stage<2>>>(schedule{order::zb_v, {2, 4, 2, true}}, 8) == "");
  CHECK(differs<mesh<stage<3>>>(schedule{order::zb_v, {3, 2, 2, true}}, 8) == "");
  CHECK(differs<mesh<data<2>, stage<3>>>(schedule{order::zb_v, {3, 5, 2, true}}, 10) == "");
  CHECK(differs<mesh<data<2>, stage<3>>>(schedule{order::one_f_one_b, {3, 5}}, 10) == "");
  CHECK(differs<mesh<data<2>, stage<3>>>(schedule{order::zb_h1, {3, 5}}, 10) == "");
  CHECK(differs<mesh<data<2>, stage<2>>>(schedule{order::one_f_one_b, {2, 3}}, 11, true) == "");
  CHECK(differs<mesh<data<3>, stage<2>>>(schedule{order::gpipe, {2, 4}}, 11, true) == "");
}

/// What is wrong with the times of a batch, beside the operations of its schedule.
std::string wrong_times(const pipeline::schedule& s, const std::vector<std::vector<pipeline::timed_operation>>& t) {
  std::string wrong = t.size() == static_cast<std::size_t>(s.of.stages) ? "" : "stages ";
  for (int stage = 0; wrong.empty() && stage < s.of.stages; ++stage) {
    const auto& all = t[static_cast<std::size_t>(stage)];
    if (all.size() != static_cast<std::size_t>(s.count())) return "operations ";
    double now = 0;
    for (const pipeline::timed_operation& x : all) {
      if (!(x.does == s.at(stage, static_cast<int>(&x - all.data())))) wrong += "order ";
      if (!(now <= x.begins && x.begins + x.waits <= x.ends && x.waits >= 0)) wrong += "times ";
      now = x.ends;
    }
  }
  return wrong + (pipeline::bubble_of(t) >= 0 && pipeline::bubble_of(t) < 1 ? "" : "bubble ");
}

TEST_CASE("a pipeline says when each operation of its last batch ran", "[runtime]") {
  constexpr pipeline::schedule s{pipeline::order::zb_h1, {2, 4}};
  const auto out = in_team<mesh<data<2>, stage<2>>>([&](const auto& t) {
    nn::program p;
    build(p, t.state()->mesh(), s.of, 8);
    nn::dynamic_network net(t.state(), seed{5}, p);
    nn::pipeline_parallel pipeline(net, last_axis(t.state()->mesh()), s);
    std::string wrong = pipeline::span_of(pipeline.timeline()) == 0 ? "" : "before ";
    const layout lies = on_stage(t.state()->mesh(), {8, 5}, 0);
    const auto given = [&](std::uint64_t i) { return distribute(t.state(), lies, global_of({8, 5}, numbers{i})); };
    for (int batch = 0; batch < 2; ++batch) {
      pipeline.forward_backward({given(1), given(2)});
      wrong += wrong_times(s, pipeline.timeline());
    }
    return wrong;
  });
  INFO(out.errors());
  REQUIRE(out.well());
  for (const auto& one : out.results) CHECK(*one == "");
}

/// All forwards of a chunk, then of the next, then all backwards: of a network that turns back at its last stage.
struct there_and_back {
  std::vector<std::vector<pipeline::operation>> lists;
  std::vector<std::span<const pipeline::operation>> views;
  pipeline::listed_schedule as;

  there_and_back(int stages, int micro_batches) {
    using pipeline::work;
    for (int s = 0; s < stages; ++s) {
      auto& list = lists.emplace_back();
      for (const int chunk : {0, 1})
        for (int m = 0; m < micro_batches; ++m) list.push_back({work::forward, m, chunk});
      for (const int chunk : {1, 0})
        for (int m = 0; m < micro_batches; ++m) {
          list.push_back({work::backward_of_inputs, m, chunk});
          if (m > 0) list.push_back({work::backward_of_weights, m - 1, chunk});
        }
      for (const int chunk : {1, 0}) list.push_back({work::backward_of_weights, micro_batches - 1, chunk});
    }
    views.assign(lists.begin(), lists.end());
    as = {{stages, micro_batches, 2, true}, views};
  }
};

TEST_CASE("a network turns back at its last stage, by a schedule of one's own", "[law][runtime][gradient]") {
  CHECK(pipeline::run_of(there_and_back(3, 4).as).why.ok());
  CHECK(differs<mesh<stage<2>>>(there_and_back(2, 3).as, 6) == "");
  CHECK(differs<mesh<stage<3>>>(there_and_back(3, 4).as, 8) == "");
  CHECK(differs<mesh<data<2>, stage<2>>>(there_and_back(2, 2).as, 8) == "");
}

TEST_CASE("what goes between stages is counted", "[law][runtime]") {
  using grid = mesh<stage<3>>;
  const auto out = in_team<grid>([](const team<grid>& t) -> std::string {
    const pipeline::schedule s{pipeline::order::one_f_one_b, {3, 4}};
    nn::program p;
    build(p, grid::value, s.of, 8);
    nn::dynamic_network net(t, seed{5}, p);
    nn::pipeline_parallel pipeline(net, last_axis(grid::value), s);
    const layout lies = on_stage(grid::value, {8, 5}, 0);
    const std::vector<tensor<dyn>> given{distribute(t, lies, global_of({8, 5}, numbers{1})),
                                         distribute(t, lies, global_of({8, 5}, numbers{2}))};
    pipeline.forward_backward(given);  // workers agree on what they bind
    const tessera::engine::received before = t.state()->total;
    pipeline.forward_backward(given);
    const index_t bytes = t.state()->total.bytes - before.bytes, messages = t.state()->total.messages - before.messages;
    // an activation of each micro-batch comes to stages 1 and 2, a gradient to 0 and 1, what is wanted to 2, and the
    // loss to 0 and 1
    const index_t batches[]{1, 2, 2}, received[]{5, 9, 5}, losses[]{8, 8, 0};
    const std::size_t here = static_cast<std::size_t>(t.rank());
    if (bytes == batches[here] * 8 * 5 * 8 + losses[here] && messages == received[here]) return "";
    return fmt::format("{}: {} bytes in {} messages", here, bytes, messages);
  });
  CHECK(out.errors() == "");
  for (const auto& one : out.results) CHECK(one.value_or("") == "");
}

/// Two layers on two stages and the sum of squares, whose gradients workers of a stage sum in bundles or layer by
/// layer.
template <class Layer>
void build_sum(nn::program& p, const mesh_value& m) {
  const auto x = p.input({on_stage(m, {dynamic, 5}, 0), element::float64});
  const auto h = to(on_stage(m, {dynamic, 5}, 1), tanh(Layer{}(x)));
  p.output(sum(square(Layer{}(h))));
}

TEST_CASE("gradients that are bundled move once before a step, and the loss of a sum is the sum", "[law][runtime]") {
  using grid = mesh<data<2>, stage<2>>;
  const auto out = in_team<grid>([](const team<grid>& t) -> std::string {
    const mesh_value& m = grid::value;
    const at::Tensor x = global_of({8, 5}, numbers{1});
    const tensor<dyn> given = distribute(t, on_stage(m, {8, 5}, 0), x);
    const auto bytes_of_two = [&](const nn::dynamic_network& net, double& loss) {
      nn::pipeline_parallel pipeline(net, last_axis(m), pipeline::schedule{pipeline::order::one_f_one_b, {2, 4}},
                                     {.loss_is_mean = false});
      pipeline.forward_backward({given});
      for (const at::Tensor& w : net.parameters()) w.mutable_grad().reset();
      const index_t before = t.state()->total.bytes;
      loss = full_tensor(pipeline.forward_backward({given}, false)[0]).item<double>();
      const index_t gathered = t.state()->total.bytes;  // full_tensor's among them, which is known
      pipeline.forward_backward({given});
      return std::pair(gathered - before, t.state()->total.bytes - gathered);
    };
    nn::program plain, bundles;
    build_sum<nn::linear<5>>(plain, m);
    build_sum<nn::bundled<nn::linear<5>>>(bundles, m);
    const nn::dynamic_network a(t, seed{5}, plain), b(t, seed{5}, bundles);
    double loss_a = 0, loss_b = 0;
    const auto [first_a, second_a] = bytes_of_two(a, loss_a);
    const auto [first_b, second_b] = bytes_of_two(b, loss_b);
    const nn::state_dict w = nn::state_of(a);
    std::map<std::string, at::Tensor> leaves;
    for (const auto& [key, one] : w) leaves[key] = one.clone().requires_grad_();
    const auto linear = [&](const at::Tensor& of, const std::string& at) {
      return at::linear(of, leaves.at(at + ".weight"), leaves.at(at + ".bias"));
    };
    const at::Tensor loss = at::sum(at::square(linear(at::tanh(linear(x, "0")), "1")));
    loss.backward();
    std::string wrong;
    for (const double one : {loss_a, loss_b})
      if (std::abs(one - loss.item<double>()) > 1e-11) wrong += "the loss ";
    for (const nn::dynamic_network* net : {&a, &b})
      net->each_parameter([&](const nn::parameter& q) {  // of two batches
        const at::Tensor off = full_tensor(q.stored().grad()) - 2 * leaves.at(q.path()).grad();
        if (off.abs().max().item<double>() > 1e-11) wrong += q.path() + " ";
      });
    // a stage has 30 numbers of one layer, half of which come twice to each of two workers that sum them
    const index_t sums = 2 * 15 * 8;
    if (second_a - second_b != 3 * sums) wrong += fmt::format("{} bytes more in each of four ", second_a - second_b);
    if (first_a - first_b != 4 * sums) wrong += fmt::format("{} bytes more where all wait ", first_a - first_b);
    return wrong;
  });
  CHECK(out.errors() == "");
  for (const auto& one : out.results) CHECK(one.value_or("") == "");
}

/// What a worker is told of a program that does not fit a pipeline.
template <class M>
std::vector<std::string> refused(const pipeline::extent& of, std::function<void(nn::program&)> build,
                                 index_t rows = 8) {
  const auto out = in_team<M>([&](const team<M>& t) {
    return told([&] {
      nn::program p;
      build(p);
      nn::dynamic_network net(t, seed{5}, p);
      nn::pipeline_parallel pipeline(net, last_axis(M::value), pipeline::schedule{pipeline::order::one_f_one_b, of});
      const layout lies = on_stage(M::value, {rows, 5}, 0);
      pipeline.forward_backward({distribute(t, lies, global_of({rows, 5}, numbers{1}))});
    });
  });
  std::vector<std::string> all;
  for (const auto& one : out.results) all.push_back(one.value_or("nothing"));
  return all;
}

TEST_CASE("what is no pipeline is refused by code, on every worker", "[refusal]") {
  using grid = mesh<stage<2>>;
  const mesh_value& m = grid::value;
  const auto all = [](const char* code) { return std::vector<std::string>(2, code); };
  const auto rows = [&](int at) { return on_stage(m, {dynamic, 5}, at); };
  const auto input = [&](nn::program& p) { return p.input({rows(0), element::float64}); };
  const auto loss = [](nn::program& p, const nn::dynamic_flow& y) { p.output(mean(square(y))); };
  CHECK(refused<grid>({2, 3}, [&](nn::program& p) { loss(p, to(rows(1), tanh(input(p)))); }) ==
        all("tessera.pipeline.micro_batches"));
  CHECK(refused<grid>({2, 2}, [&](nn::program& p) { loss(p, tanh(input(p))); }) == all("tessera.pipeline.idle"));
  CHECK(refused<grid>({2, 2}, [&](nn::program& p) { loss(p, to(rows(0), tanh(to(rows(1), tanh(input(p)))))); }) ==
        all("tessera.pipeline.backwards"));
  CHECK(refused<grid>({2, 2}, [&](nn::program& p) {
          layout everywhere = rows(0);
          everywhere.set_placement(0, {});
          loss(p, tanh(to(everywhere, tanh(to(rows(1), tanh(input(p)))))));
        }) == all("tessera.pipeline.place"));
  CHECK(refused<grid>({3, 2}, [&](nn::program& p) { loss(p, tanh(input(p))); }) == all("tessera.pipeline.axis"));
  CHECK(refused<grid>({2, 2}, [&](nn::program& p) { p.output(tanh(to(rows(1), tanh(input(p))))); }) ==
        all("tessera.pipeline.loss"));
  CHECK(refused<grid>({2, 2}, [&](nn::program& p) {
          const auto x = input(p);
          loss(p, nn::recomputed([&](const nn::dynamic_flow& y) { return tanh(to(rows(1), tanh(y))); })(x));
        }) == all("tessera.pipeline.recompute"));
}

TEST_CASE("inputs whose micro-batches would have other rows are refused, unless they are said to be whole",
          "[refusal]") {
  using grid = mesh<data<2>, stage<2>>;
  const auto told_with = [](const nn::pipeline_options& options) {
    const auto out = in_team<grid>([&](const team<grid>& t) {
      layout x = on_stage(grid::value, {8, 5}, 0), y = x;
      y.set_placement(0, {});
      return told([&] {
        nn::program p;
        const auto first = p.input({x, element::float64}), second = p.input({y, element::float64});
        const auto h = tanh(first) * mean(second);
        p.output(mean(square(tanh(to(on_stage(grid::value, {dynamic, 5}, 1), h)))));
        nn::dynamic_network net(t, seed{5}, p);
        nn::pipeline_parallel pipeline(net, last_axis(grid::value), pipeline::schedule{pipeline::order::gpipe, {2, 2}},
                                       options);
        pipeline.forward_backward(
            {distribute(t, x, global_of({8, 5}, numbers{1})), distribute(t, y, global_of({8, 5}, numbers{2}))});
      });
    });
    std::vector<std::string> all;
    for (const auto& one : out.results) all.push_back(one.value_or("nothing"));
    return all;
  };
  CHECK(told_with({}) == std::vector<std::string>(4, "tessera.pipeline.rows"));
  CHECK(told_with({.whole_inputs = {1}}) == std::vector<std::string>(4, "none"));
}

TEST_CASE("a stage that fails in the middle of a schedule ends all workers with its error", "[refusal]") {
  using grid = mesh<stage<2>>;
  const mesh_value& m = grid::value;
  const auto out = in_team<grid>([&](const team<grid>& t) -> std::string {
    layout lies = on_stage(m, {dynamic}, 0), there = on_stage(m, {dynamic}, 1);
    nn::program p;
    const auto x = p.input({lies, element::int64});
    p.output(mean(square(to(there, x) | nn::embedding<3, 4>{})) +
             mean(square(to(on_stage(m, {dynamic, 4}, 1), x | nn::embedding<9, 4>{}))));
    nn::dynamic_network net(t, seed{5}, p);
    net.compare_indices(false);
    nn::pipeline_parallel pipeline(net, last_axis(m), pipeline::schedule{pipeline::order::one_f_one_b, {2, 4}});
    lies.dims[0].extent = 8;
    const at::Tensor words = at::tensor({0, 1, 2, 0, 1, 7, 0, 0}, at::kLong);
    pipeline.forward_backward({distribute(t, lies, words)});
    return "";
  });
  for (const char* part : {"worker 0: [tessera.pipeline.failed]", "worker 1: [tessera.pipeline.failed]",
                           "(stage 1, micro-batch 2)", "forward: "})
    CHECK_THAT(out.errors(), Catch::Matchers::Contains(part));
}

template <int P>
struct model : axis<P> {};

/// Two layers cut over an axis on the first stage, one on the second.
struct cut_layers {
  template <class X, class Y>
  constexpr auto operator()(const X& x, const Y& wanted) const {
    using grid = mesh<data<2>, model<2>, stage<2>>;
    using first = partition<grid, blocks<data<2>>, whole, on<stage<2>, 0>>;
    using second = partition<grid, blocks<data<2>>, whole, on<stage<2>, 1>>;
    const auto h = nn::linear<6, cut_in<model<2>>, output_as<first>>{}(tanh(nn::linear<8, cut_out<model<2>>>{}(x)));
    return mean(square(nn::linear<5>{}(tanh(to<second>(h))) - wanted));
  }
};

TEST_CASE("a network that is a type runs in a pipeline beside cuts of rows and of features",
          "[law][runtime][gradient]") {
  using grid = mesh<data<2>, model<2>, stage<2>>;
  struct rows : dyn {};
  using given = tensor<partition<grid, blocks<data<2>>, whole, on<stage<2>, 0>>, shape<rows, dim<5>>, double>;
  using wanted = tensor<partition<grid, blocks<data<2>>, whole, on<stage<2>, 1>>, shape<rows, dim<5>>, double>;
  const auto out = in_team<grid>([](const team<grid>& t) -> std::string {
    const nn::network<cut_layers, given, wanted> net{t, seed{4}};
    const at::Tensor x = global_of({9, 5}, numbers{1}), y = global_of({9, 5}, numbers{2});
    const nn::state_dict state = nn::state_of(net);
    std::map<std::string, at::Tensor> w;
    for (const auto& [key, value] : state) w[key] = value.clone().requires_grad_();
    const auto linear = [&](const at::Tensor& of, const std::string& at) {
      return at::linear(of, w.at(at + ".weight"), w.at(at + ".bias"));
    };
    const at::Tensor loss = at::mean(at::square(linear(at::tanh(linear(at::tanh(linear(x, "0")), "1")), "2") - y));
    loss.backward();
    nn::pipeline_parallel pipeline(net, last_axis(grid::value),
                                   pipeline::schedule{pipeline::order::one_f_one_b, {2, 3}},
                                   {.rows = pipeline::micro_batch_sizes::uneven});
    const auto got = pipeline.forward_backward({distribute<given>(t, x).dynamic(), distribute<wanted>(t, y).dynamic()});
    std::string wrong;
    if (std::abs(full_tensor(got[0]).item<double>() - loss.item<double>()) > 1e-13) wrong += "the loss ";
    net.each_parameter([&](const nn::parameter& q) {
      const at::Tensor off = full_tensor(q.stored().grad()) - w.at(q.path()).grad();
      if (off.abs().max().item<double>() > 1e-13) wrong += q.path() + " ";
    });
    return wrong;
  });
  CHECK(out.errors() == "");
  for (const auto& one : out.results) CHECK(one.value_or("") == "");
}

}  // namespace pipelined
