#include "tests/support/built_program.hpp"
#include "tests/support/tensors.hpp"

#include <tessera/nn/file/network_file.hpp>

using namespace tessera;
using namespace tessera::engine;
using namespace tessera::testing;

// Programs that are put together while they run against those that the compiler makes: the same nodes, parameters and
// bits.

namespace {

enum class by { module, values, file };

/// How far two networks are from one another: outputs, gradients, parameters after a step.
template <class N>
double far_from_typed(const team<typename N::grid>& t, by how) {
  nn::program p;
  if (how == by::module) {
    const auto x = p.input<typename N::image>();
    p.output(typename N::model{}(x, p.input<typename N::features>()));
  } else if (how == by::values) {
    N::write(p);
  } else {
    nn::read_network(p, as_file, t.mesh(), "network.json");
  }
  const typename N::net typed{t, seed{5}};
  nn::dynamic_network made{t, seed{5}, p};
  const nn::dynamic_network dynamic = made.clone();
  double worst = typed.parameters().size() == dynamic.parameters().size() ? 0 : 1;
  const auto judge = [&](const at::Tensor& a, const at::Tensor& b) {
    worst = std::max(worst, at::equal(a, b) ? 0.0 : 1.0);
  };
  for (const index_t n : {2, 3}) {
    const at::Tensor image = global_of({n, 2, 7, 6}, numbers{1});
    const at::Tensor extra = global_of({n, 5}, numbers{2});
    const auto run = [&](const auto& net, auto&& call) {
      auto x = distribute<typename N::image>(t, image);
      auto e = distribute<typename N::features>(t, extra);
      x.requires_grad();
      e.requires_grad();
      const std::vector<tensor<dyn>> y = call(net, x, e);
      for (const at::Tensor& w : net.parameters()) w.mutable_grad().reset();
      sum(y[0] * y[0]).backward(true);
      sum(y[1]).backward();
      std::map<std::string, at::Tensor> seen{{"y", full_tensor(y[0])},
                                             {"z", full_tensor(y[1])},
                                             {"dx", full_tensor(x.grad())},
                                             {"de", full_tensor(e.grad())}};
      net.each_parameter([&](const nn::parameter& w) { seen[w.path()] = w.stored().local().grad().clone(); });
      return seen;
    };
    const auto a = run(typed, [](const auto& net, const auto& x, const auto& e) {
      const auto [y, z] = net(x, e);
      return std::vector<tensor<dyn>>{y.dynamic(), z.dynamic()};
    });
    const auto b =
        run(dynamic, [](const auto& net, const auto& x, const auto& e) { return net({x.dynamic(), e.dynamic()}); });
    for (const auto& [key, value] : a) judge(value, b.at(key));
  }
  const auto state = nn::state_of(typed);
  for (const auto& [key, value] : nn::state_of(dynamic)) judge(value, state.at(key));
  return worst;
}

template <class N>
void judge_built(by how) {
  const auto run = in_team<typename N::grid>([&](auto& t) { return far_from_typed<N>(t, how); });
  INFO(run.errors());
  REQUIRE(run.well());
  for (const auto& r : run.results) CHECK(*r == 0);
}

}  // namespace

TEST_CASE(
    "a module on flows that are values, a program of values and one from a file run as the one that the compiler "
    "makes",
    "[runtime][gradient]") {
  for (const by how : {by::module, by::values, by::file}) {
    judge_built<built<1, 1>>(how);
    judge_built<built<2, 2>>(how);
    judge_built<built<3, 1>>(how);
  }
}

namespace {

/// A layer that gives two results, and does not say so.
struct two_of_one {
  static constexpr const char* name = "two_of_one";
  static constexpr layer_plan plan(const tensor_value& x) {
    layer_plan p;
    p.add_input(x.layout);
    p.add_output(x.layout);
    p.add_output(x.layout);
    return p;
  }
  static at::Tensor forward(const nn::call& c) { return c.operand(); }
};

}  // namespace

TEST_CASE("what does not fit in a program of values is thrown where it is added, and the program stays as it was",
          "[refusal]") {
  using N = built<2, 2>;
  nn::program p;
  nn::program other;
  const auto x = p.input<N::image>();
  const auto extra = p.input<N::features>();
  const auto y = x | nn::conv_layer{.out = 3, .kernel = {3, 3}} | nn::relu{};
  const auto none = logical_not(y);
  const auto says = [](const std::string& text, const std::string& what) {
    INFO(text);
    CHECK(text.find(what) != std::string::npos);
  };
  says(said_of([&] { y | nn::conv_layer{.out = 4, .kernel = {9, 9}}; }), "layer 2 (conv)");
  says(said_of([&] { y | nn::conv_layer{.out = 4}; }), "[tessera.layer.kernel]");
  says(said_of([&] { y | nn::conv_layer{.out = 4, .kernel = {3, 3}, .stride = {1, 1, 1}}; }),
       "[tessera.layer.options]");
  says(said_of([&] { y | nn::conv_layer{.out = 4, .kernel = {3, 3}, .stride = {2}, .padding_same = true}; }),
       "[tessera.layer.same_padding]");
  says(said_of([&] { y | nn::conv_layer{.out = 4, .kernel = {3, 3}, .padding = {1}, .padding_same = true}; }),
       "[tessera.layer.twice]");
  says(said_of([&] { y | nn::conv_transpose_layer{.out = 4, .kernel = {3, 3}, .output_padding = {1}}; }),
       "[tessera.layer.output_padding]");
  says(said_of([&] { y | nn::conv_transpose_layer{.out = 4, .kernel = {3, 3}, .stride = {2}, .output_size = {99}}; }),
       "[tessera.layer.output_padding]");
  says(said_of([&] { y | nn::conv_transpose_layer{.out = 4, .kernel = {1, 1}, .padding = {9}}; }),
       "[tessera.layer.nothing_left]");
  says(said_of([&] { y | nn::conv_transpose_layer{.out = 4, .kernel = {3, 3}, .groups = 2}; }),
       "[tessera.layer.groups]");
  says(said_of([&] { y | nn::linear_layer{.out = 4, .cut_out = {"nowhere"}}; }), "[tessera.");
  says(said_of([&] { y | nn::conv_layer{.out = 4, .kernel = {3, 3}, .weights_as = element::int32}; }),
       "[tessera.tensor.cotangent]");
  says(said_of([&] {
         other.input({value_of<N::image>.layout, element::int32}) | nn::conv_layer{.out = 4, .kernel = {3, 3}};
       }),
       "[tessera.tensor.cotangent]");
  says(said_of([&] { x + extra; }), "[tessera.shape.extent]");
  says(said_of([&] { x + other.input<N::image>(); }), "[tessera.network.flow]");
  says(said_of([&] { y | two_of_one{}; }), "[tessera.network.results]");
  says(said_of([&] { p.output(other.input<N::image>()); }), "[tessera.network.flow]");
  says(said_of([&] { p.finish(); }), "[tessera.network.output]");
  says(said_of([&] { none * 0.5; }), "[tessera.function.element]");
  // A part that fails half-way leaves no node, no scope and no number behind.
  const auto half = [](const auto& in) {
    return in * 3.0 | nn::conv_layer{.out = 4, .kernel = {3, 3}} | nn::conv_layer{.out = 4, .kernel = {9, 9}};
  };
  says(said_of([&] { y | half; }), "layer 2.1 (conv)");
  says(said_of([&] { y | nn::under("encoder", half); }), "layer encoder.1 (conv)");
  says(said_of([&] { y * 2.0 + extra; }), "[tessera.");
  says(said_of([&] { (y | nn::conv_layer{.out = 4, .kernel = {9, 9}}); }), "layer 2 (conv)");
  p.output(y | nn::relu{});
  const auto done = p.finish();
  REQUIRE(done.view.count == 5);
  CHECK(std::string(done.view.nodes[1].record->name) == "relu");
  CHECK(std::string(done.view.nodes[3].record->name) == "times");
  CHECK((done.view.nodes[4].number == 2 && done.view.nodes[4].scope == -1 && done.view.nodes[4].scalar.re == 0));
}

TEST_CASE("the memory of a program is that of the type that is the same", "[plan]") {
  using four = built<2, 2>;
  for (const by how : {by::module, by::values, by::file}) {
    nn::program p;
    if (how == by::module) p.output(four::model{}(p.input<four::image>(), p.input<four::features>()));
    else if (how == by::values) four::write(p);
    else nn::read_network(p, as_file, four::grid::value, "network.json");
    CHECK(p.peak_memory(3) == peak_memory<four::net>(bind<frames>(3)));
  }
  using rows = tensor<partition<four::grid, blocks<four::up>, whole>, shape<frames, dim<48>>, float>;
  using inside = nn::chain<nn::linear<96>, nn::relu, nn::linear<48>>;
  const auto differs = [](auto module) {
    nn::program p;
    p.output(p.input<rows>() | module);
    return !(p.peak_memory(12) == peak_memory<nn::network<decltype(module), rows>>(bind<frames>(12)));
  };
  CHECK_FALSE(differs(nn::bundled<inside>{}));
  CHECK_FALSE(differs(nn::sharded_over<inside, gathered<gathering::held>>{}));
  CHECK_FALSE(differs(nn::sharded_over<inside, four::up>{}));
  nn::program p;
  p.output(p.input<rows>() | inside{});
  CHECK_THROWS_WITH(p.peak_memory(INT64_MAX / 2), Catch::Matchers::Contains("tessera.cost.overflow"));
}

TEST_CASE("a program says what it is called with and what it gives: names, layouts, elements", "[plan]") {
  const mesh_value grid = built<2, 2>::grid::value;
  nn::program p;
  nn::read_network(p, as_file, grid, "network.json");
  REQUIRE(p.inputs().size() == 2);
  REQUIRE(p.outputs().size() == 2);
  CHECK((p.inputs()[0].name == "image" && p.inputs()[1].name == "extra"));
  CHECK((p.outputs()[0].name == "scores" && p.outputs()[1].name == "first"));
  const tensor_value& image = p.inputs()[0].is;
  CHECK(image.element == element::float64);
  CHECK(
      (image.layout.dims[0].tag == text("frames") && image.layout.dims[1].extent == 2 && image.layout.levels(2) == 1));
  const tensor_value& first = p.outputs()[1].is;
  CHECK((first.element == element::float64 && first.layout.dims[1].extent == 2 && first.layout.dims[3].extent == 22 &&
         first.layout.levels(3) == 1));
  const auto net = [&] {
    const auto run = in_team<built<2, 2>::grid>([&](auto& t) {
      const nn::dynamic_network made{t, seed{5}, p};
      const nn::dynamic_network other = made.clone();
      return made.inputs()[1].name + " " + made.outputs()[0].name + " " + other.inputs()[0].name + " " +
             other.outputs()[1].name;
    });
    return run.of(0);
  };
  CHECK(net() == "extra scores image first");
  nn::program unnamed;
  unnamed.output(unnamed.input(image) | nn::relu{});
  CHECK((unnamed.inputs()[0].name.empty() && unnamed.outputs()[0].name.empty() &&
         unnamed.outputs()[0].is.layout == image.layout));
}

namespace {

struct five_sums {
  constexpr auto operator()(auto a, auto b, auto c, auto d, auto e) const { return flows{(a + b) + (c + d), d * e}; }
};

}  // namespace

TEST_CASE("a network has any number of inputs: typed ones, or a list of tensors whose layouts are values",
          "[refusal][runtime]") {
  struct up : axis<2> {};
  using line = mesh<up>;
  using part = tensor<partition<line, blocks<up>>, shape_of<5>, double>;
  using spelled = tensor<partition<mesh<up>, blocks<up>, replicate<>>, shape_of<5>, double>;
  using net_type = nn::network<five_sums, part, part, part, part, part>;
  const auto run = in_team<line>([](auto& t) -> std::string {
    const net_type net{t, seed{1}};
    nn::program p;
    std::vector<nn::dynamic_flow> in;
    for (int i = 0; i < 5; ++i) in.push_back(p.input<part>());
    p.output(five_sums{}(in[0], in[1], in[2], in[3], in[4]));
    const nn::dynamic_network built{t, seed{1}, p};
    std::vector<at::Tensor> all;
    std::vector<part> x;
    std::vector<tensor<dyn>> values;
    for (int i = 0; i < 5; ++i) {
      all.push_back(global_of({5}, numbers{static_cast<std::uint64_t>(i)}));
      x.push_back(distribute<part>(t, all.back()));
      values.push_back(x.back().dynamic());
    }
    const at::Tensor sum = (all[0] + all[1]) + (all[2] + all[3]), product = all[3] * all[4];
    const auto right = [&](const auto& y, const auto& z) {
      return at::equal(full_tensor(y), sum) && at::equal(full_tensor(z), product);
    };
    const auto [y, z] = net(x[0], distribute<spelled>(t, all[1]), x[2], x[3], x[4]);
    static_assert(std::is_same_v<decltype(y), const part>);
    const auto by_list = net(values), of_values = built(values),
               in_braces = built({values[0], values[1], values[2], values[3], values[4]});
    std::string wrong;
    if (!right(y, z) || !right(by_list[0], by_list[1]) || !right(of_values[0], of_values[1]) ||
        !right(in_braces[0], in_braces[1]))
      wrong += "other numbers; ";
    values.pop_back();
    for (const auto& refused : {said_of([&] { net(values); }), said_of([&] { built(values); })})
      if (refused.find("[tessera.signature.operands]") != 0) wrong += refused;
    values.push_back(distribute(
        t,
        [] {
          layout whole = value_of<part>.layout;
          whole.set_placement(0, {});
          return whole;
        }(),
        all[4]));
    for (const auto& refused : {said_of([&] { net(values); }), said_of([&] { built(values); })})
      if (refused.find("[tessera.tensor.partition]") != 0) wrong += refused;
    return wrong;
  });
  INFO(run.errors());
  REQUIRE(run.well());
  CHECK((run.of(0).empty() && run.of(1).empty()));
}

namespace {

struct led {
  struct up : axis<2> {};
  struct across : axis<2> {};
  using grid = mesh<up, across>;
  using tiles = tensor<partition<grid, blocks<up>, blocks<across>>, shape<frames, dim<7>>, double>;
  using rows = partition<grid, blocks<up>, whole, invariant<across>>;
  using sums = partition<grid, blocks<up>, invariant<across>>;

  struct model {
    constexpr auto operator()(auto x) const { return to<rows>(x) * 2.0; }
  };
};

}  // namespace

TEST_CASE(
    "a flow of a program is led to a layout, by any verb or by one that is named, as the compiler's is; what does not "
    "lead there is refused",
    "[refusal][runtime][gradient]") {
  const auto run = in_team<led::grid>([](auto& t) -> std::string {
    nn::program p;
    const auto x = p.input<led::tiles>("x");
    const layout rows = value_of<tensor<led::rows, shape<frames, dim<7>>>>.layout;
    p.output(to(rows, x) * 2.0);
    {
      layout short_lived = rows;  // its lists, if it had any, are the program's
      p.output(to(verb::all_gather, short_lived, x) * 2.0);
    }
    std::string wrong;
    const nn::network<led::model, led::tiles> typed{t, seed{1}};
    const nn::dynamic_network built{t, seed{1}, p};
    for (const index_t n : {5, 2}) {
      const at::Tensor whole = global_of({n, 7}, numbers{static_cast<std::uint64_t>(n)});
      const auto judge = [&](auto&& of) {
        auto in = distribute<led::tiles>(t, whole);
        in.requires_grad();
        const tensor<dyn> y = of(in);
        sum(y * y).backward();
        if (y.layout() != typed(in).layout() || !at::equal(full_tensor(y), 2 * whole) ||
            !at::equal(full_tensor(in.grad()), 8 * whole))
          wrong += "other numbers; ";
      };
      judge([&](const auto& in) { return typed(in).dynamic(); });
      judge([&](const auto& in) { return built({in.dynamic()})[0]; });
      judge([&](const auto& in) { return built({in.dynamic()})[1]; });
    }
    const auto refused = [&](auto&& f, const char* code) {
      const std::string said = said_of(f);
      if (said.find(code) != 0) wrong += said;
    };
    refused([&] { to(verb::reduce_scatter, rows, x); }, "[tessera.verb.pair]");
    refused([&] { to(value_of<tensor<led::rows, shape<frames, dim<6>>>>.layout, x); }, "[tessera.shape.extent]");
    refused([&] { to(value_of<tensor<led::sums, shape<frames>>>.layout, x); }, "[tessera.partition.dimensions]");
    return wrong;
  });
  INFO(run.errors());
  REQUIRE(run.well());
  for (int r = 0; r < 4; ++r) CHECK(run.of(r) == "");
}

namespace {

// A whole and a stage of it, over rows and columns.
template <int R, int C>
struct shared_stage {
  struct up : axis<R> {};
  struct across : axis<C> {};
  using grid = mesh<up, across>;
  using rows = partition<grid, blocks<up>, whole, invariant<across>>;
  using input = tensor<rows, shape<frames, dim<5>>, double>;
  using wide = tensor<rows, shape<frames, dim<4>>, double>;
  using everywhere = partition<grid, whole, whole, invariant<up>, invariant<across>>;

  template <index_t Out>
  struct encoder {
    constexpr auto operator()(auto x) const {
      return x | nn::linear<Out, cut_out<across>>{} | nn::batch_norm<>{} |
             nn::linear<4, cut_in<across>, output_as<rows>>{};
    }
  };
  // One weight where rows are cut and where all have all of them.
  struct model {
    constexpr auto operator()(auto x) const {
      const auto y = x | nn::named<struct front, encoder<6>>{} | nn::shared<struct tied, nn::linear<4>>{};
      return to<everywhere>(y) | nn::shared<struct tied, nn::linear<4>>{};
    }
  };
  using net = nn::network<model, input>;
  using stage = nn::network<encoder<6>, input>;
  using other_stage = nn::network<encoder<7>, input>;
  using end = nn::sequential<wide, nn::named<struct tied, nn::linear<4>>>;
};

using by_key = std::map<std::string, at::Tensor>;

at::Tensor serial_stage(const at::Tensor& x, const by_key& w) {
  const at::Tensor y = at::linear(x, w.at("front.0.weight"), w.at("front.0.bias"));
  const at::Tensor n = at::batch_norm(y, w.at("front.1.weight"), w.at("front.1.bias"), {}, {}, true, 0.1, 1e-5, false);
  return at::linear(n, w.at("front.2.weight"), w.at("front.2.bias"));
}
at::Tensor serial_whole(const at::Tensor& x, const by_key& w) {
  const at::Tensor y = at::linear(serial_stage(x, w), w.at("tied.weight"), w.at("tied.bias"));
  return at::linear(y, w.at("tied.weight"), w.at("tied.bias"));
}

/// How far the whole and its stages, typed and built, are from one process: outputs, the gradients that add up, a step
/// of all.
template <class M>
double stages_apart(const team<typename M::grid>& t) {
  auto net = std::make_unique<typename M::net>(t, seed{5});
  const typename M::stage typed{net->at("front")};
  nn::program p;
  p.output(typename M::template encoder<6>{}(p.input<typename M::input>()));
  const nn::dynamic_network built{net->at("front"), p};
  const typename M::end end{net->at()};
  const nn::state_dict begun = nn::state_of(*net);
  by_key w(begun.begin(), begun.end());
  for (auto& [key, value] : w)
    if (value.is_floating_point()) value = value.clone().set_requires_grad(key.find("running") == key.npos);

  double worst =
      typed.parameters().size() == 6 && built.parameters().size() == 6 && end.parameters().size() == 2 ? 0 : 1e9;
  const auto judge = [&](const at::Tensor& a, const at::Tensor& b) {
    worst = std::max(worst, a.sizes() != b.sizes() ? 1e9 : (a - b).abs().max().template item<double>());
  };
  const at::Tensor given = global_of({7, 5}, numbers{1});
  const auto x = distribute<typename M::input>(t, given);
  const auto y = (*net)(x);
  const auto first = typed(x);
  const tensor<dyn> second = built(x);
  const auto last = end(distribute<typename M::wide>(t, global_of({7, 4}, numbers{2})));
  sum(y * y).backward();
  sum(first * first).backward();
  sum(second).backward();
  sum(last * last).backward();
  const at::Tensor a = serial_whole(given, w);
  const at::Tensor b = serial_stage(given, w);
  const at::Tensor c = at::linear(global_of({7, 4}, numbers{2}), w.at("tied.weight"), w.at("tied.bias"));
  ((a * a).sum() + (b * b).sum() + b.sum() + (c * c).sum()).backward();
  for (const auto& [ours, theirs] : {std::make_pair(full_tensor(y), a), std::make_pair(full_tensor(first), b),
                                     std::make_pair(full_tensor(second), b), std::make_pair(full_tensor(last), c)})
    judge(ours, theirs);
  const auto gradients = [&](const auto& of) {
    of.each_parameter([&](const nn::parameter& q) {
      judge(full_tensor(tensor<dyn>(t.state(), cotangent(q.stored().layout()), q.stored().local().grad())),
            w.at(q.key()).grad());
    });
  };
  gradients(*net);
  gradients(typed);
  gradients(built);
  {
    const at::NoGradGuard no_record;
    for (const at::Tensor& q : net->parameters()) q.sub_(q.grad(), 0.1);
    for (auto& [key, value] : w)
      if (value.requires_grad()) value.sub_(value.grad(), 0.1);
  }
  // The whole called its buffers once, and each stage did; they stay when it goes.
  judge(nn::state_of(built).at("front.1.num_batches_tracked").to(at::kDouble), at::full({}, 3.0, at::kDouble));
  const typename M::stage apart = typed.clone();
  net.reset();
  judge(full_tensor(typed(x)), serial_stage(given, w));
  judge(full_tensor(built(x)), serial_stage(given, w));
  for (const at::Tensor& q : typed.parameters()) q.mutable_grad().reset();
  for (const auto& [key, value] : nn::state_of(apart))
    if (value.is_floating_point() && key.find("running") == key.npos) judge(value, w.at(key));
  sum(apart(x)).backward();
  worst += typed.parameters()[0].grad().defined() ? 1e9 : 0;
  return worst;
}

template <int R, int C>
void judge_stages() {
  using M = shared_stage<R, C>;
  const auto run = in_team<typename M::grid>([](auto& t) { return stages_apart<M>(t); });
  INFO(run.errors());
  REQUIRE(run.well());
  for (const auto& r : run.results) CHECK(*r < 1e-12);
}

}  // namespace

TEST_CASE("a network of a program is made of what a launch over a mesh that is a value hands out", "[runtime]") {
  using N = built<2, 2>;
  const mesh_value grid = value_of<N::features>.layout.mesh;
  nn::program p;
  p.output(p.input<N::features>() | nn::linear_layer{.out = 3});
  const at::Tensor x = global_of({4, 5}, numbers{3});
  std::atomic<int> right = 0;
  launch(0, nullptr, threads_only(), grid, [&](const team_handle& workers) {
    const nn::dynamic_network net{workers, seed{5}, p};
    const nn::state_dict w = nn::state_of(net);
    layout lies = value_of<N::features>.layout;
    lies.dims[0].extent = 4;
    const at::Tensor y = full_tensor(net(distribute(workers, lies, x)));
    right += at::allclose(y, at::linear(x, w.at("0.weight"), w.at("0.bias")), 1e-12, 1e-12);
  });
  CHECK(right == 4);
}

TEST_CASE(
    "a whole and its stages, typed and built, share parameters and buffers; a tied weight is used as each of its "
    "layers takes it",
    "[refusal][gradient]") {
  judge_stages<1, 1>();
  judge_stages<2, 2>();
  judge_stages<3, 1>();
  using M = shared_stage<2, 2>;
  const auto refused = [](const char* code, const char* key, const auto& make) {
    CHECK(satisfied<M::grid>([&](auto& t) {
            const M::net whole{t, seed{5}.at("all")};
            const std::string said = said_of([&] { make(t, whole); });
            return said.find(fmt::format("[{}]", code)) == 0 && said.find(key) != said.npos;
          }) == 4);
  };
  refused("tessera.network.shared", "all.front.0.weight",
          [](auto&, const M::net& whole) { const M::other_stage part{whole.at("front")}; });
  refused("tessera.network.part", "all.back.0.weight",
          [](auto&, const M::net& whole) { const M::stage part{whole.at("back")}; });
  // One layer that is named is shared as any part is.
  CHECK(satisfied<M::grid>([&](auto& t) {
          const M::net whole{t, seed{5}.at("all")};
          const nn::network<nn::linear<4>, M::wide> tied{whole.at("tied")};
          nn::program p;
          p.output(p.input<M::wide>() | nn::linear_layer{.out = 4});
          const nn::dynamic_network built{whole.at("tied"), p};
          const at::Tensor w = nn::state_of(whole).at("all.tied.weight"), b = nn::state_of(whole).at("all.tied.bias"),
                           x = global_of({3, 4}, numbers{2});
          const auto in = distribute<typename M::wide>(t, x);
          const auto is_it = [&](const at::Tensor& y) { return at::allclose(y, at::linear(x, w, b), 1e-12, 1e-12); };
          return tied.parameters().size() == 2 && nn::state_of(tied).count("all.tied.weight") == 1 &&
                 is_it(full_tensor(tied(in))) && is_it(full_tensor(built(in)));
        }) == 4);
  refused("tessera.network.part", "all.front.0.running_mean", [](auto&, const M::net& whole) {
    const nn::network<nn::batch_norm<no_affine>, M::wide> part{whole.at("front")};
  });
  refused("tessera.network.shared", "all.tied.weight", [](auto&, const M::net& whole) {
    nn::program p;
    p.output(p.input<M::wide>() | nn::under("tied", nn::linear_layer{.out = 4, .weights_as = element::float32}));
    const nn::dynamic_network part{whole.at(), p};
  });
}
