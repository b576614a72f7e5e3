#include "tests/support/tensors.hpp"

#include <tessera/inspect/profile.hpp>

#include <nlohmann/json.hpp>

using namespace tessera;
using namespace tessera::engine;
using namespace tessera::testing;

// What an observer is told of the layers of a network, forward and backward, and what a profile makes of it.

namespace {

struct watched_frames : dyn {};
struct upward : axis<2> {};
struct sideward : axis<2> {};
using watched_grid = mesh<upward, sideward>;
using watched_image = tensor<partition<watched_grid, whole, whole, blocks<upward>, blocks<sideward>>,
                             shape<watched_frames, dim<4>, dim<12>, dim<12>>, double>;
using watched_channels = partition<watched_grid, whole, blocks<upward, sideward>, whole, whole>;

struct watched_module {
  constexpr auto operator()(auto x) const {
    const auto y = x | nn::named<struct body, nn::chain<nn::conv<4, kernel<3, 3>, padding<1, 1>>, nn::relu>>{};
    return tanh(y + (y | nn::conv<4, kernel<3, 3>, padding<1, 1>>{})) | nn::repartition<watched_channels>{} |
           nn::flatten{} | nn::linear<6>{};
  }
};
using watched_types = network_type<watched_module, watched_image>;
using watched_net = nn::network<watched_module, watched_image>;

// [diary]
/// Writes down what it is told.
struct diary final : nn::layer_observer {
  std::vector<std::string> lines;
  void entered(const nn::layer_visit& v) override { note("+", v); }
  void left(const nn::layer_visit& v) override { note("-", v); }
  void note(const char* what, const nn::layer_visit& v) {
    lines.push_back(fmt::format("{}{} {}{}", what, v.direction == purpose::backward ? "backward " : "", v.path,
                                v.path.empty() ? v.name : ""));
  }
};
// [end]

struct in_turn {
  std::vector<std::string> forward, backward;
};
// Visits in the order in which they began; empty where one began inside another or another one ended.
in_turn visits_of(const std::vector<std::string>& lines) {
  in_turn all;
  for (std::size_t i = 0; i + 1 < lines.size(); i += 2) {
    if (lines[i][0] != '+' || lines[i + 1] != "-" + lines[i].substr(1)) return {};
    const std::string what = lines[i].substr(1);
    if (what.starts_with("backward ")) all.backward.push_back(what.substr(10));
    else all.forward.push_back(what.substr(1));
  }
  return lines.size() % 2 == 0 ? all : in_turn{};
}

/// Keeps what it is shown, by layer and tensor; gradients once for all that came.
struct album final : nn::layer_observer {
  std::map<std::string, at::Tensor> pictures;
  void entered(const nn::layer_visit&) override {}
  void left(const nn::layer_visit&) override {}
  bool sees_tensors() const override { return true; }
  void computed(const nn::layer_visit& v, std::span<const nn::layer_tensor> all) override {
    for (const nn::layer_tensor& x : all) keep(v, "", x);
  }
  void gradient(const nn::layer_visit& v, const nn::layer_tensor& x) override { keep(v, "gradient of ", x); }
  void keep(const nn::layer_visit& v, const char* what, const nn::layer_tensor& x) {
    const char* const roles[] = {"operand", "parameter", "result"};
    const std::string which = fmt::format("{} {}{} {}", v.name, what, roles[static_cast<int>(x.is)], x.number) +
                              (x.name.empty() ? "" : " ") + x.name;
    at::Tensor& there = pictures[which];
    there = there.defined() ? there + x.local.detach() : x.local.detach().clone();
  }
};

struct side : axis<2> {};
using two_sides = mesh<side>;
using shown_rows = tensor<partition<two_sides, blocks<side>, whole>, shape<watched_frames, dim<4>>, double>;
struct shown_module {
  constexpr auto operator()(auto x) const {
    const auto y = tanh(x | nn::linear<6>{});
    return y * y + y;
  }
};

/// A layer that fails.
struct failing {
  static constexpr const char* name = "failing";
  static constexpr layer_plan plan(const tensor_value& x) { return nn::relu::plan(x); }
  static at::Tensor forward(const nn::call&) { throw std::runtime_error("on purpose"); }
};

}  // namespace

template <>
inline constexpr tessera::kind tessera::engine::kind_of<failing> = tessera::kind::layer;

TEST_CASE("an observer is told of each layer, forward and backward, and of nothing when it is gone", "[runtime]") {
  const auto run = in_team<watched_grid>([](auto& t) {
    watched_net net{t, seed{3}};
    const auto x = distribute<watched_image>(t, global_of({3, 4, 12, 12}, numbers{1}));
    const auto written = std::make_shared<diary>();
    net(x).local().sum().backward();
    net.observe(written);
    net(x).local().sum().backward();
    const std::vector<std::string> once = written->lines;
    net(x).local().sum().backward();
    net.observe(nullptr);
    const std::size_t twice = written->lines.size();
    net(x).local().sum().backward();
    return std::make_tuple(once, twice, written->lines.size());
  });
  REQUIRE(run.well());
  const std::vector<std::string> forward{"body.0", "body.1", "0", "add", "tanh", "repartition", "1", "2"};
  const std::vector<std::string> backward{"2", "1", "repartition", "tanh", "add", "0", "body.1", "body.0"};
  for (const auto& r : run.results) {
    const auto& [once, twice, then] = *r;
    CHECK(visits_of(once).forward == forward);
    CHECK(visits_of(once).backward == backward);
    CHECK(twice == 2 * once.size());
    CHECK(then == twice);
  }
}

TEST_CASE("each step is told once, however many came before, and of a graph that outlives its observer nobody hears",
          "[runtime]") {
  const auto run = in_team<watched_grid>([](auto& t) {
    watched_net net{t, seed{3}};
    const auto x = distribute<watched_image>(t, global_of({3, 4, 12, 12}, numbers{1}));
    const auto first = std::make_shared<diary>(), second = std::make_shared<diary>();
    net.observe(first);
    std::vector<std::size_t> each;
    for (int step = 0; step < 4; ++step) {
      const std::size_t before = first->lines.size();
      net(x).local().sum().backward();
      each.push_back(first->lines.size() - before);
    }
    // Of two calls that one backward ends each layer is told of both.
    const std::size_t before = first->lines.size();
    (net(x).local().sum() + net(x).local().sum()).backward();
    each.push_back((first->lines.size() - before) / 2);
    const auto later = net(x).local().sum();
    const std::size_t heard = first->lines.size();
    net.observe(second);
    net.observe(nullptr);
    later.backward();
    return std::make_tuple(each, first->lines.size() - heard, second->lines.size());
  });
  REQUIRE(run.well());
  for (const auto& r : run.results) {
    const auto& [each, removed, never] = *r;
    CHECK(each == std::vector<std::size_t>(5, 2 * (8 + 8)));
    CHECK(removed == 0);
    CHECK(never == 0);
  }
}

TEST_CASE("an observer that sees tensors is shown what serial layers take and give, and their gradients", "[runtime]") {
  const auto run = in_team<two_sides>([](auto& t) {
    nn::network<shown_module, shown_rows> net{t, seed{3}};
    const at::Tensor whole = global_of({5, 4}, numbers{1}), g = global_of({5, 6}, numbers{2});
    const auto part = [&](const at::Tensor& of) { return t.rank() == 0 ? of.slice(0, 0, 3) : of.slice(0, 3, 5); };
    const auto step = [&] {
      auto x = distribute<shown_rows>(t, whole);
      x.requires_grad();
      torch::autograd::backward({net(x).local()}, {part(g)});
    };
    step();  // its parameter's node lasts
    const auto seen = std::make_shared<album>();
    net.observe(seen);
    step();
    seen->pictures.clear();
    step();  // what is shown is this one's alone

    std::vector<at::Tensor> weights;  // whole on all
    net.each_parameter([&](const nn::parameter& p) { weights.push_back(p.stored().local().detach()); });
    const auto leaf = [](const at::Tensor& of) { return of.detach().requires_grad_(); };
    const at::Tensor x = leaf(whole), w = leaf(weights[0]), b = leaf(weights[1]);
    const at::Tensor h = at::linear(x, w, b);
    const at::Tensor y = at::tanh(h);
    const at::Tensor z = y * y;
    for (const at::Tensor& one : {h, y, z}) one.retain_grad();
    torch::autograd::backward({z + y}, {g});
    const at::Tensor to_product = 2 * y * g;  // both operands are one tensor
    const std::map<std::string, at::Tensor> wanted{
        {"linear operand 0", part(x)},
        {"linear parameter 0 0.weight", w},
        {"linear parameter 1 0.bias", b},
        {"linear result 0", part(h)},
        {"linear gradient of result 0", part(h.grad())},
        {"linear gradient of operand 0", part(x.grad())},
        {"linear gradient of parameter 0 0.weight", w.grad()},
        {"linear gradient of parameter 1 0.bias", b.grad()},
        {"tanh operand 0", part(h)},
        {"tanh result 0", part(y)},
        {"tanh gradient of result 0", part(y.grad())},
        {"tanh gradient of operand 0", part(h.grad())},
        {"mul operand 0", part(y)},
        {"mul operand 1", part(y)},
        {"mul result 0", part(z)},
        {"mul gradient of result 0", part(g)},
        {"mul gradient of operand 0", part(to_product)},
        {"add operand 0", part(z)},
        {"add operand 1", part(y)},
        {"add result 0", part(z + y)},
        {"add gradient of result 0", part(g)},
        {"add gradient of operand 0", part(g)},
        {"add gradient of operand 1", part(g)},
    };
    std::string differ;
    for (const auto& [name, picture] : seen->pictures)
      if (wanted.count(name) == 0) differ += "also " + name + "; ";
    for (const auto& [name, value] : wanted) {
      const auto found = seen->pictures.find(name);
      if (found == seen->pictures.end()) differ += "no " + name + "; ";
      else if (found->second.sizes() != value.sizes() || !at::allclose(found->second, value, 1e-13, 1e-13))
        differ += name + "; ";
    }
    return differ;
  });
  INFO(run.errors());
  REQUIRE(run.well());
  for (const auto& r : run.results) CHECK(*r == "");
}

TEST_CASE("a layer that throws is left, and so is the backward that it interrupts", "[runtime]") {
  struct alone : axis<1> {};
  using line = tensor<partition<mesh<alone>, whole>, shape_of<4>, double>;
  const auto run = in_team<mesh<alone>>([](auto& t) {
    nn::sequential<line, nn::relu, failing> net{t, seed{}};
    const auto written = std::make_shared<diary>();
    net.observe(written);
    told([&] { net(distribute<line>(t, at::ones({4}, at::kDouble))); });
    return written->lines;
  });
  REQUIRE(run.well());
  CHECK(visits_of(run.of(0)).forward == std::vector<std::string>{"0", "1"});
}

TEST_CASE("a profile of several steps says of each layer what its plan moves, times the steps", "[plan][runtime]") {
  constexpr int steps = 5;
  const auto run = in_team<watched_grid>([](auto& t) {
    watched_net net{t, seed{3}};
    const at::Tensor image = global_of({3, 4, 12, 12}, numbers{1});
    const auto step = [&] {
      auto x = distribute<watched_image>(t, image);
      x.requires_grad();
      const auto y = net(x);
      torch::autograd::backward({y.local()}, {at::ones_like(y.local())});
    };
    step();  // binds
    const profile of_steps(net);
    for (int i = 0; i < steps; ++i) step();
    return of_steps.spans();
  });
  REQUIRE(run.well());
  constexpr const auto& program = watched_types::program;
  tessera::detail::bound_extents known;
  known.push({bind<watched_frames>(3).tag, 3});
  index_t moved = 0;
  for (int i = 0; i < program.count; ++i) {
    const auto& layer = *program.nodes[i].record;
    const std::string path = tessera::detail::path_of(program, program.nodes[i]);
    const traffic_value plan = tessera::detail::bound_traffic(layer.plan(), layer.elements, known);
    index_t bytes[2]{}, visits[2]{};
    for (const auto& worker : run.results)
      for (const layer_span& v : *worker)
        if (v.path == path && v.name == layer.name) {
          bytes[v.backward] += v.bytes;
          ++visits[v.backward];
        }
    INFO(path << " " << layer.name);
    CHECK(bytes[0] == steps * plan.forward.bytes);
    CHECK(bytes[1] == steps * plan.backward.bytes);
    CHECK(visits[0] == 4 * steps);
    CHECK(visits[1] == 4 * steps);
    moved += bytes[1];
  }
  CHECK(moved > 0);
}

TEST_CASE("a profile weighs what was counted: bytes and memory of every layer, on all workers", "[plan][runtime]") {
  struct seen {
    std::vector<layer_span> spans, to_input;  // without and with a gradient of the input
    std::string table, scopes, trace;
  };
  const auto run = in_team<watched_grid>([](auto& t) {
    watched_net net{t, seed{3}};
    const at::Tensor image = global_of({3, 4, 12, 12}, numbers{1});
    const auto step = [&](bool to_input) {
      auto x = distribute<watched_image>(t, image);
      if (to_input) x.requires_grad();
      const auto y = net(x);
      torch::autograd::backward({y.local()}, {at::ones_like(y.local())});
    };
    step(true);  // binds, and makes the gradients
    std::vector<layer_span> to_input;
    {
      const profile of_step(net);
      step(true);
      to_input = of_step.spans();
    }
    const profile of_step(net);
    step(false);
    return seen{of_step.spans(), to_input, of_step.table(), of_step.table({.depth = 0, .by_bytes = true, .most = 2}),
                of_step.chrome_trace()};
  });
  INFO(run.errors());
  REQUIRE(run.well());
  constexpr traffic_value moved = traffic<watched_types, bind<watched_frames>(3)>();
  constexpr memory_value taken = peak_memory<watched_types, bind<watched_frames>(3)>();
  std::int64_t bytes[2]{}, messages[2]{}, memory = 0;
  for (const auto& r : run.results) {
    for (const layer_span& v : r->to_input) {
      bytes[v.backward] += v.bytes;
      messages[v.backward] += v.messages;
      CHECK(v.end >= v.begin);
    }
    for (const layer_span& v : r->spans) memory = std::max(memory, v.memory);
  }
  CHECK(bytes[0] == moved.forward.bytes);
  CHECK(bytes[1] == moved.backward.bytes);
  CHECK(messages[0] == moved.forward.messages);
  CHECK(messages[1] == moved.backward.messages);
  CHECK(static_cast<double>(memory) <= 1.05 * static_cast<double>(taken.training));
  CHECK(static_cast<double>(memory) >= 0.85 * static_cast<double>(taken.training));

  for (const auto& r : run.results) {
    CHECK(r->table == run.of(0).table);
    CHECK(r->trace == run.of(0).trace);
  }
  CHECK(run.of(0).table.find("\nbody.0 conv ") != std::string::npos);
  const std::string& scopes = run.of(0).scopes;  // two, the largest first, one of them the layers of `body` together
  CHECK(std::count(scopes.begin(), scopes.end(), '\n') == 4);
  CHECK(scopes.find("body") == std::string::npos);
  CHECK(scopes.find("\nall ") != std::string::npos);
  const auto trace = nlohmann::json::parse(run.of(0).trace);
  std::map<int, std::size_t> rows, names;
  for (const auto& event : trace.at("traceEvents")) {
    if (event.at("ph") == "M") ++names[event.at("tid").get<int>()];
    if (event.at("ph") == "X") ++rows[event.at("tid").get<int>()];
  }
  CHECK(names == std::map<int, std::size_t>{{0, 1}, {1, 1}, {2, 1}, {3, 1}});
  for (int rank = 0; rank < 4; ++rank) CHECK(rows[rank] == run.of(rank).spans.size());
}
