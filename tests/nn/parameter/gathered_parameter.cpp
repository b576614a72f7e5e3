#include "tests/support/tensors.hpp"

#include <tessera/nn/file/network_file.hpp>
#include <tessera/tensor/memory/memory_count.hpp>

#include <torch/nn/utils/clip_grad.h>
#include <torch/optim/adam.h>
#include <torch/optim/sgd.h>

#include <numeric>

using namespace tessera;
using namespace tessera::engine;
using namespace tessera::testing;

// Parameters that are stored as tiles: what a network gives, learns and saves stays, whatever axes they are stored
// over.

namespace {

struct samples : dyn {};

template <int D, int M>
struct tiles {
  struct data : axis<D> {};
  struct model : axis<M> {};
  using grid = mesh<data, model>;
  using rows = tensor<partition<grid, blocks<data>, whole>, shape<samples, dim<10>>, double>;

  // Rows cut, columns cut, copies; a bias too small for some grids; weights that two layers share.
  struct block {
    constexpr auto operator()(auto x) const {
      const auto y = x | nn::linear<9, cut_out<model>>{} | nn::relu{} |
                     nn::linear<10, cut_in<model>, output_as<partition<grid, blocks<data>, whole>>>{};
      return (x + y) | nn::layer_norm<>{} | nn::shared<struct tied, nn::linear<10, no_bias>>{} | nn::relu{} |
             nn::shared<struct tied, nn::linear<10, no_bias>>{} | nn::linear<2>{};
    }
  };
  using plain = nn::network<block, rows>;
  using over_data = nn::network<nn::sharded_over<block, data>, rows>;
  using over_all = nn::network<nn::sharded_over<block, model, data>, rows>;
  using kept = nn::network<nn::sharded_over<block, data, model, gathered<gathering::once>>, rows>;
  using nested = nn::network<nn::sharded_over<nn::sharded_over<block, model>, data>, rows>;
};

at::Tensor serial_of_tiles(const at::Tensor& x, const std::map<std::string, at::Tensor>& w) {
  const auto linear = [&](const at::Tensor& in, const std::string& at) {
    return at::linear(in, w.at(at + ".weight"), w.count(at + ".bias") > 0 ? w.at(at + ".bias") : at::Tensor{});
  };
  const at::Tensor normed =
      at::layer_norm(x + linear(at::relu(linear(x, "0")), "2"), {10}, w.at("3.weight"), w.at("3.bias"));
  return linear(linear(at::relu(linear(normed, "tied")), "tied"), "5");
}

/// How far five steps are from the serial ones, and how many elements of parameters this worker holds.
template <class Net, class Rows>
double distance(const auto& workers, index_t& held) {
  Net net{workers, seed{5}};
  std::map<std::string, at::Tensor> w;
  std::vector<at::Tensor> leaves;
  for (const auto& [key, t] : nn::state_of(net)) leaves.push_back(w[key] = t.clone().requires_grad_(true));
  torch::optim::Adam ours(net.parameters(), torch::optim::AdamOptions(0.01));
  torch::optim::Adam theirs(leaves, torch::optim::AdamOptions(0.01));
  double worst = leaves.size() == 9 ? 0 : 1;
  const auto judge = [&](const at::Tensor& a, const at::Tensor& b) {
    worst = std::max(worst, (a - b).abs().max().template item<double>());
  };
  held = 0;
  for (const at::Tensor& p : net.parameters()) held += p.numel();
  for (int step = 0; step < 5; ++step) {
    const at::Tensor a =
        global_of({step == 2 ? 3 : 7, 10}, numbers{static_cast<std::uint64_t>(step)}).set_requires_grad(true);
    ours.zero_grad();
    theirs.zero_grad();
    auto x = distribute<Rows>(workers, a.detach());
    x.requires_grad();
    const auto y = net(x);
    const at::Tensor serial = serial_of_tiles(a, w);
    const auto loss = sum(y * y);
    loss.backward(step == 3);
    (serial * serial).sum().backward({}, step == 3);
    if (step == 3) {  // once more through the same graph
      loss.backward();
      (serial * serial).sum().backward();
    }
    judge(full_tensor(y), serial.detach());
    judge(full_tensor(x.grad()), a.grad());
    ours.step();
    theirs.step();
  }
  for (const auto& [key, t] : nn::state_of(net)) judge(t, w.at(key));
  return worst;
}

template <class Net, int D, int M>
void judge_stored(bool cut_everywhere) {
  using N = tiles<D, M>;
  std::vector<index_t> held(static_cast<std::size_t>(D * M));
  const auto run = in_team<typename N::grid>(
      [&](auto& t) { return distance<Net, typename N::rows>(t, held[static_cast<std::size_t>(t.rank())]); });
  INFO(run.errors());
  REQUIRE(run.well());
  for (const auto& r : run.results) CHECK(*r < 1e-11);
  const index_t all = 9 * 10 + 9 + 10 * 9 + 10 + 10 + 10 + 100 + 20 + 2;
  if (cut_everywhere) CHECK(std::accumulate(held.begin(), held.end(), index_t{0}) == all);  // each element once
}

template <int D, int M>
void judge_grid() {
  using N = tiles<D, M>;
  judge_stored<typename N::over_data, D, M>(M == 1);
  judge_stored<typename N::over_all, D, M>(true);
  judge_stored<typename N::kept, D, M>(true);
  judge_stored<typename N::nested, D, M>(true);
}

// Fused rows, whose results come back one after the other, and a part that runs again within one that does.
template <class... Over>
struct fused_rows {
  constexpr auto operator()(auto given) const {
    const auto [q, k, v] = given | nn::sharded_over<nn::heads<4, 2, 3>, Over...>{};
    const auto [gate, up] = nn::attention<>{}(q, k, v) | nn::sharded_over<nn::gated<6>, Over...>{};
    return gate * up |
           nn::recompute<nn::chain<
               nn::recompute<nn::sharded_over<nn::chain<nn::linear<5>, nn::relu, nn::linear<3>>, Over...>>>>{};
  }
};

/// What some calls, forward and backward, bring all workers, less what is counted; what is held is reduced behind them.
template <class Net>
index_t uncounted(const std::vector<index_t>& extents, int calls = 1) {
  const auto run = in_team<typename Net::input::mesh_type>([&](auto& t) {
    const Net net{t, seed{3}};
    auto x = distribute<typename Net::input>(
        t, global_of(extents, numbers{1}).to(tessera::detail::scalar_type_of(value_of<typename Net::input>.element)));
    x.requires_grad();
    net(x);  // binds
    nn::reduce_gradients(net);
    const index_t before = t.state()->total.bytes;
    for (int i = 0; i < calls; ++i) {
      const auto again = net(x);
      torch::autograd::backward({again.local()}, {at::ones_like(again.local())});
    }
    nn::reduce_gradients(net);
    return t.state()->total.bytes - before;
  });
  if (!run.well()) return -1;
  index_t all = 0;
  for (const auto& r : run.results) all += *r;
  const traffic_value counted = traffic<Net>(bind<samples>(extents[0]));
  return all - calls * (counted.forward.bytes + counted.backward.bytes) - counted.gathered.bytes -
         counted.reduced.bytes;
}

// The same weight twice, and biases that some grids cannot cut.
void add_held(nn::program& p, const nn::dynamic_flow& x, gathering times = gathering::held) {
  const auto layers = [](const auto& in) {
    const auto once = [](const auto& y) {
      return y | nn::shared_under("tied", nn::linear_layer{.out = 10, .bias = false}) | nn::relu{};
    };
    return once(once(in)) | nn::linear_layer{.out = 7} | nn::relu{} | nn::linear_layer{.out = 2};
  };
  p.output(nn::sharded({"data", "model"}, layers, times)(x));
}
/// A linear layer that takes its weight and fails.
struct taking_and_throwing {
  static constexpr const char* name = "taking_and_throwing";
  static constexpr layer_plan plan(const tensor_value& x) { return nn::linear<50>::plan(x); }
  static at::Tensor forward(const nn::call& c) {
    c.weight(0);
    throw std::out_of_range("no such table");
  }
};
at::Tensor serial_of_held(const at::Tensor& x, const std::map<std::string, at::Tensor>& w) {
  const auto once = [&](const at::Tensor& y) { return at::relu(at::linear(y, w.at("tied.weight"))); };
  return at::linear(at::relu(at::linear(once(once(x)), w.at("2.weight"), w.at("2.bias"))), w.at("4.weight"),
                    w.at("4.bias"));
}

/// How far steps of three micro-batches each are from the serial ones; a step gathers once and reduces once.
template <class Grid, class Rows>
double accumulated(const team<Grid>& workers) {
  nn::program p;
  add_held(p, p.input<Rows>());
  nn::dynamic_network net{workers, seed{5}, p};
  net.compare_copies_every(0);
  std::map<std::string, at::Tensor> w;
  std::vector<at::Tensor> leaves;
  index_t elements = 0;
  for (const auto& [key, t] : nn::state_of(net)) {
    leaves.push_back(w[key] = t.clone().requires_grad_(true));
    elements += t.numel();
  }
  torch::optim::SGD ours(net.parameters(), torch::optim::SGDOptions(0.05).momentum(0.9));
  torch::optim::SGD theirs(leaves, torch::optim::SGDOptions(0.05).momentum(0.9));
  double worst = leaves.size() == 5 ? 0 : 1;
  const auto judge = [&](const at::Tensor& a, const at::Tensor& b) {
    worst = std::max(worst, (a - b).abs().max().template item<double>());
  };
  std::vector<index_t> moved;
  const auto note = [&](const auto& f) {
    const index_t before = workers.state()->total.bytes;
    f();
    moved.push_back(workers.state()->total.bytes - before);
  };
  for (int step = 0; step < 4; ++step) {
    if (step != 2) ours.zero_grad(), theirs.zero_grad();  // else gradients of two steps add up
    for (const index_t samples : {7, 3, 5}) {
      const at::Tensor a = global_of(
          {samples, 10}, numbers{static_cast<std::uint64_t>(10 * step) + static_cast<std::uint64_t>(samples)});
      const auto x = distribute<Rows>(workers, a);
      tensor<dyn> y;
      note([&] { y = net(x); });
      const tensor<dyn> loss = sum(y * y);
      note([&] { loss.backward(); });
      const at::Tensor serial = serial_of_held(a, w);
      (serial * serial).sum().backward();
      judge(full_tensor(y), serial.detach());
    }
    note([&] { nn::reduce_gradients(net); });
    if (step == 1)
      worst = std::max(worst, std::abs(nn::grad_norm(net) - torch::nn::utils::clip_grad_norm_(leaves, 1e9)));
    ours.step();
    theirs.step();
  }
  for (const auto& [key, t] : nn::state_of(net)) judge(t, w.at(key));
  // Of four steps each moves alike: this worker's share of what is gathered, nothing, and its share of what is summed.
  for (std::size_t i = 0; i < 7; ++i) {
    if (i != 0 && i != 6 && moved[7 + i] != 0) return 100;
    if (moved[7 + i] != moved[21 + i]) return 200;
  }
  index_t all = 0;
  const std::vector<std::uint64_t> each = workers.state()->collect(
      {static_cast<std::uint64_t>(moved[7]), static_cast<std::uint64_t>(moved[13])}, "adding what moved");
  for (const std::uint64_t bytes : each) all += static_cast<index_t>(bytes);
  return all == 2 * 8 * elements * (workers.size() - 1) ? worst : 300;
}

template <int D, int M>
void judge_held() {
  using N = tiles<D, M>;
  const auto run =
      in_team<typename N::grid>([&](auto& t) { return accumulated<typename N::grid, typename N::rows>(t); });
  INFO(run.errors());
  REQUIRE(run.well());
  for (const auto& r : run.results) CHECK(*r < 1e-11);
}

template <class Net>
std::map<std::string, at::Tensor> begun(const auto& team) {
  std::map<std::string, at::Tensor> all;
  Net net{team, seed{3}};
  for (const auto& [key, t] : nn::state_of(net)) all[key] = t;
  return all;
}

using four = tiles<2, 2>;

constexpr const char* in_a_file = R"({
  "inputs": [{"name": "x", "shape": ["samples", 10], "element": "double", "dims": [{"blocks": ["data"]},
   {"whole": true}]}],
  "nodes": [
    {"name": "a", "layer": "linear", "of": "x", "out_features": 9, "cut_out": ["model"], "sharded_over": ["data"]},
    {"name": "b", "layer": "relu", "of": "a"},
    {"name": "y", "layer": "linear", "of": "b", "out_features": 2, "sharded_over": ["data", "model"], "gathered": "HOW"}
  ],
  "outputs": ["y"]
})";
std::string in_a_file_that(const std::string& how) {
  std::string all = in_a_file;
  return all.replace(all.find("HOW"), 3, how);
}

}  // namespace

TEST_CASE("a network whose parameters are stored as tiles learns what the serial one does", "[gradient]") {
  judge_grid<1, 1>();
  judge_grid<4, 1>();
  judge_grid<2, 2>();
  judge_grid<3, 2>();
}

TEST_CASE("stored as tiles parameters begin with the same bits, under the same keys, and load from one another's files",
          "[runtime]") {
  const int well = satisfied<four::grid>([](team<four::grid>& t) {
    const auto plain = begun<four::plain>(t);
    const auto same = [&](const auto& other) {
      return other.size() == plain.size() && std::all_of(plain.begin(), plain.end(), [&](const auto& one) {
               return at::equal(one.second, other.at(one.first));
             });
    };
    four::over_all net{t, seed{9}};
    four::plain source{t, seed{3}};
    nn::assign(net, nn::state_of(source));
    std::map<std::string, at::Tensor> assigned;
    for (const auto& [key, w] : nn::state_of(net)) assigned[key] = w;
    four::over_all copy = net.clone();
    std::map<std::string, at::Tensor> cloned;
    for (const auto& [key, w] : nn::state_of(copy)) cloned[key] = w;
    return same(begun<four::over_data>(t)) && same(begun<four::over_all>(t)) && same(begun<four::nested>(t)) &&
           same(assigned) && same(cloned);
  });
  CHECK(well == 4);
}

TEST_CASE("programs of values and files store their parameters as tiles too", "[gradient]") {
  using rows = four::rows;
  const int well = satisfied<four::grid>([](team<four::grid>& t) {
    const nn::network<nn::chain<nn::sharded_over<nn::linear<9, cut_out<four::model>>, four::data>, nn::relu,
                                nn::sharded_over<nn::linear<2>, four::data, four::model, gathered<gathering::once>>>,
                      rows>
        typed{t, seed{3}};
    nn::program p;
    const auto x = p.input<rows>();
    p.output(x | nn::sharded({"data"}, nn::linear_layer{.out = 9, .cut_out = {"model"}}) | nn::relu{} |
             nn::sharded({"data", "model"}, nn::linear_layer{.out = 2}, gathering::once));
    const nn::dynamic_network built{t, seed{3}, p};
    nn::program of_types;
    of_types.output(of_types.input<rows>() | nn::sharded_over<nn::linear<9, cut_out<four::model>>, four::data>{} |
                    nn::relu{} | nn::sharded_over<nn::linear<2>, four::data, four::model, gathered<gathering::once>>{});
    const nn::dynamic_network mixed{t, seed{3}, of_types};
    nn::program q;
    nn::read_network(q, in_a_file_that("once"), four::grid::value, "a file");
    const nn::dynamic_network read{t, seed{3}, q};
    nn::program r;
    nn::read_network(r, in_a_file_that("held"), four::grid::value, "a file");
    const nn::dynamic_network held{t, seed{3}, r};
    const at::Tensor a = global_of({6, 10}, numbers{1});
    const auto gradients = [&](const auto& net) {
      const auto y = net(distribute<rows>(t, a));
      sum(y * y).backward();
      nn::reduce_gradients(net);
      std::vector<at::Tensor> all{full_tensor(y).detach()};
      for (const at::Tensor& w : net.parameters()) all.push_back(w.grad());
      return all;
    };
    const auto wanted = gradients(typed);
    const auto alike = [&](const std::vector<at::Tensor>& other) {
      bool same = other.size() == wanted.size() && wanted.size() == 5;
      for (std::size_t i = 0; same && i < wanted.size(); ++i) same = at::equal(other[i], wanted[i]);
      return same;
    };
    return alike(gradients(built)) && alike(gradients(mixed)) && alike(gradients(read)) && alike(gradients(held));
  });
  CHECK(well == 4);
}

TEST_CASE("what is gathered of a released parameter is there for a graph of the backward too", "[gradient]") {
  using line = tiles<4, 1>;
  using net_type = nn::network<nn::chain<nn::sharded_over<nn::linear<6, no_bias>, line::data>, nn::relu>, line::rows>;
  const int well = satisfied<line::grid>([](team<line::grid>& t) {
    const net_type net{t, seed{3}};
    at::Tensor w = nn::state_of(net).at("0.weight").clone().requires_grad_(true);
    const at::Tensor a = global_of({5, 10}, numbers{1}).set_requires_grad(true);
    auto x = distribute<line::rows>(t, a.detach());
    x.requires_grad();
    const auto y = net(x);
    const at::Tensor first = torch::autograd::grad({sum(y * y * y).local()}, {x.local()}, {}, true, true)[0];
    (first * first).sum().backward({}, true);
    const at::Tensor ours = net.parameters()[0].grad().clone();
    const at::Tensor serial_y = at::relu(at::linear(a, w));
    const at::Tensor serial = torch::autograd::grad({(serial_y * serial_y * serial_y).sum()}, {a}, {}, true, true)[0];
    (serial * serial).sum().backward();
    (first * first).sum().backward();  // the same graph once more
    const at::Tensor whole =
        full_tensor(tensor<dyn>(t.state(), cotangent(net.program.nodes[0].record->plan().stored(0)), ours));
    return (whole - w.grad()).abs().max().item<double>() < 1e-11 &&
           (net.parameters()[0].grad() - 2 * ours).abs().max().item<double>() < 1e-10;
  });
  CHECK(well == 4);
}

TEST_CASE("who steps a released parameter between forward and backward is told", "[refusal]") {
  CHECK(refusals<four::grid>("tessera.parameter.changed", [](team<four::grid>& t) {
          const four::over_all net{t, seed{3}};
          const auto y = net(distribute<four::rows>(t, global_of({5, 10}, numbers{1})));
          {
            const at::NoGradGuard no_graph;
            for (at::Tensor w : net.parameters()) w.mul_(2);
          }
          sum(y * y).backward();
        }) == 4);
}

TEST_CASE("an axis that the mesh lacks is refused where programs of values name it", "[refusal]") {
  CHECK(refusals<four::grid>("tessera.partition.axis", [](team<four::grid>&) {
          nn::program p;
          const auto x = p.input<four::rows>();
          static_cast<void>(x | nn::sharded({"depth"}, nn::linear_layer{.out = 9}));
        }) == 4);
}

TEST_CASE(
    "fused layers whose parameters are tiles, and a part that runs again within one that does, bring just the bytes "
    "that are counted",
    "[plan][runtime]") {
  struct data : axis<3> {};
  using sequences = tensor<partition<mesh<data>, blocks<data>, whole, whole>, shape<samples, dim<2>, dim<10>>, double>;
  CHECK(uncounted<nn::network<fused_rows<data>, sequences>>({7, 2, 10}) == 0);
  CHECK(uncounted<nn::network<fused_rows<data, gathered<gathering::once>>, sequences>>({7, 2, 10}) == 0);
  using held = nn::network<fused_rows<data, gathered<gathering::held>>, sequences>;
  CHECK(uncounted<held>({7, 2, 10}, 3) == 0);
  CHECK(traffic<held>(bind<samples>(7)).gathered.bytes > 0);
  // Gradients of what runs again come to where they wait too.
  const int well = satisfied<mesh<data>>([](team<mesh<data>>& t) {
    const held net{t, seed{3}};
    const nn::network<fused_rows<data>, sequences> twice{t, seed{3}};
    for (const std::uint64_t batch : {1u, 2u}) {
      const auto x = distribute<sequences>(t, global_of({5, 2, 10}, numbers{batch}));
      const auto y = net(x), z = twice(x);
      sum(y * y).backward();
      sum(z * z).backward();
    }
    nn::reduce_gradients(net);
    bool alike = net.parameters().size() == twice.parameters().size();
    for (std::size_t i = 0; alike && i < net.parameters().size(); ++i)
      alike = at::allclose(net.parameters()[i].grad(), twice.parameters()[i].grad(), 1e-11, 1e-11);
    return alike;
  });
  CHECK(well == 3);
}

TEST_CASE("what is held learns over micro-batches as serial accumulation does, gathered once and reduced once a step",
          "[gradient]") {
  judge_held<1, 1>();
  judge_held<2, 2>();
  judge_held<3, 2>();
}

TEST_CASE("a layer that throws leaves nothing of what it took", "[runtime]") {
  const int well = satisfied<four::grid>([](team<four::grid>& t) {
    const nn::network<nn::sharded_over<nn::chain<taking_and_throwing>, four::data>, four::rows> net{t, seed{5}};
    const auto x = distribute<four::rows>(t, global_of({7, 10}, numbers{1}));
    told([&] { net(x); });  // binds
    memory_count count;
    const bool threw = told([&] { net(x); }) == "tessera.network.layer";
    return threw && count.now() < 10 * 50 * 8;
  });
  CHECK(well == 4);
}

TEST_CASE("rows of a table that is held are made shorter in place, in what is stored and in what is gathered",
          "[runtime]") {
  const int well = satisfied<four::grid>([](team<four::grid>& t) {
    const auto learned = [&](gathering times) {
      nn::program p;
      const auto x = p.input<tensor<partition<four::grid, blocks<four::data>>, shape<dim<3>>, std::int64_t>>();
      p.output(x |
               nn::sharded({"data", "model"}, nn::embedding_layer{.rows = 5, .features = 6, .max_norm = 1.5}, times));
      const nn::dynamic_network net{t, seed{5}, p};
      for (const index_t first : {0, 2, 0}) {
        const at::Tensor rows = at::arange(first, first + 3, at::kLong);
        const tensor<dyn> y = net(distribute(t.state(), p.value_of(x).layout, rows));
        sum(y * y).backward();
      }
      nn::reduce_gradients(net);
      return std::vector<at::Tensor>{net.parameters()[0].detach(), net.parameters()[0].grad()};
    };
    const auto held = learned(gathering::held), twice = learned(gathering::twice);
    return at::equal(held[0], twice[0]) && at::allclose(held[1], twice[1], 1e-6, 1e-6);
  });
  CHECK(well == 4);
}

TEST_CASE("who steps, or asks for a norm, before what is held is reduced is told, and nothing changes", "[refusal]") {
  const int well = satisfied<four::grid>([](team<four::grid>& t) {
    nn::program p;
    add_held(p, p.input<four::rows>());
    nn::dynamic_network net{t, seed{5}, p};
    const auto before = nn::state_of(net);
    const auto x = distribute<four::rows>(t, global_of({7, 10}, numbers{1}));
    const auto says = [](const auto& f) {
      try {
        f();
      } catch (const std::exception& e) {
        return std::string(e.what());
      }
      return std::string("nothing");
    };
    const auto refused = [&](const auto& f) { return says(f).find("tessera.gradient.unreduced") != std::string::npos; };
    const auto backward = [&] {
      const auto y = net(x);
      sum(y * y).backward();
    };
    const auto all = [](const nn::dynamic_network& of) {
      std::vector<at::Tensor> grads;
      for (const at::Tensor& w : of.parameters()) grads.push_back(w.grad().clone());
      return grads;
    };
    torch::optim::SGD sgd(net.parameters(), torch::optim::SGDOptions(0.05));
    torch::optim::Adam adam(net.parameters(), torch::optim::AdamOptions(0.05));
    backward();
    bool right = refused([&] { sgd.step(); }) && refused([&] { adam.step(); });
    right = right && told([&] { nn::grad_norm(net); }) == "tessera.gradient.unreduced" &&
            told([&] { nn::clip_grad_norm(net, 1.0); }) == "tessera.gradient.unreduced";
    for (const auto& [key, w] : nn::state_of(net)) right = right && at::equal(w, before.at(key));
    nn::reduce_gradients(net);
    const auto once = all(net);
    // What a zero_grad meets waiting is gone, and what was reduced before adds up.
    sgd.zero_grad();
    backward();
    sgd.zero_grad();
    backward();
    nn::reduce_gradients(net);
    const auto same = all(net);
    backward();
    nn::reduce_gradients(net);
    const auto both = all(net);
    for (std::size_t i = 0; i < once.size(); ++i)
      right = right && at::equal(once[i], same[i]) && at::allclose(2 * once[i], both[i], 1e-12, 1e-12);
    // Weights that are assigned are gathered again; not while gradients wait.
    auto other = before;
    for (auto& [key, w] : other) w = w * 2;
    nn::assign(net, other);
    std::map<std::string, at::Tensor> w(other.begin(), other.end());
    right = right && (full_tensor(net(x)) - serial_of_held(full_tensor(x), w)).abs().max().item<double>() < 1e-11;
    backward();
    nn::assign(net, before);
    right = right && told([&] { net(x); }) == "tessera.gradient.unreduced";
    sgd.zero_grad();
    const auto y = net(x);
    nn::reduce_gradients(net);
    return right && told([&] { sum(y * y).backward(); }) == "tessera.parameter.changed";
  });
  CHECK(well == 4);
}

namespace {

struct wrapped_name;
struct wrapped_tie;
using wrapped_grid = four::grid;
using wrapped_rows = tensor<partition<wrapped_grid, blocks<four::data>, whole>, shape<samples, dim<10>>, double>;
struct wrapped_part {
  constexpr auto operator()(auto x) const {
    return x | nn::linear<8>{} | nn::dropout<probability<1, 4>>{} | nn::linear<10>{};
  }
};
template <class Part>
using wrapped_net = nn::sequential<wrapped_rows, nn::relu, Part, nn::linear<2>>;

/// What a network saves, and what it gives as it trains.
template <class Net>
std::pair<nn::state_dict, at::Tensor> begins(team<wrapped_grid>& t, const Net& net) {
  return {nn::state_of(net), full_tensor(net(distribute<wrapped_rows>(t, global_of({6, 10}, numbers{4}))))};
}
template <class Net, class Part>
std::string differs_from_part(team<wrapped_grid>& t) {
  const wrapped_net<Part> plain{t, seed{3}};
  const Net net{t, seed{3}};
  const auto [wanted, masked] = begins(t, plain);
  const auto [state, y] = begins(t, net);
  if (state.size() != wanted.size()) return "other keys";
  for (const auto& [key, w] : wanted)
    if (state.count(key) == 0 || !at::equal(state.at(key), w)) return "another " + key;
  return at::allclose(y, masked, 1e-12, 1e-12) ? "" : "another mask";
}
template <class Part>
void judge_around() {
  using data = four::data;
  CHECK(satisfied<wrapped_grid>(
            [](auto& t) { return differs_from_part<wrapped_net<nn::sharded_over<Part, data>>, Part>(t) == ""; }) == 4);
  CHECK(satisfied<wrapped_grid>(
            [](auto& t) { return differs_from_part<wrapped_net<nn::recompute<Part>>, Part>(t) == ""; }) == 4);
  CHECK(satisfied<wrapped_grid>([](auto& t) {
          return differs_from_part<
                     wrapped_net<nn::recompute<nn::sharded_over<nn::recompute<Part>, data, gathered<gathering::held>>>>,
                     Part>(t) == "";
        }) == 4);
}

}  // namespace

TEST_CASE("what is around a part leaves its keys, its initial values and its masks as they are", "[runtime]") {
  judge_around<nn::named<wrapped_name, wrapped_part>>();
  judge_around<nn::shared<wrapped_tie, nn::linear<10>>>();
  judge_around<nn::linear<10>>();
  // In a program of values.
  CHECK(satisfied<wrapped_grid>([](team<wrapped_grid>& t) {
          using data = four::data;
          const auto states = [&](const auto& part) {
            nn::program p;
            p.output(p.input<wrapped_rows>() | nn::relu{} | part | nn::linear_layer{.out = 2});
            return nn::state_of(nn::dynamic_network{t, seed{3}, p});
          };
          const auto inside = nn::under("wrapped_name", wrapped_part{});
          const nn::state_dict wanted = states(inside);
          bool well = wanted.count("wrapped_name.0.weight") == 1;
          const auto alike = [&](const nn::state_dict& all) {
            well = well && all.size() == wanted.size();
            for (const auto& [key, w] : wanted) well = well && all.count(key) == 1 && at::equal(all.at(key), w);
          };
          alike(states(nn::sharded({"data"}, inside)));
          alike(states(nn::recomputed(inside)));
          alike(states(nn::recomputed(nn::sharded({"data"}, nn::recomputed(inside)))));
          alike(states(nn::under("wrapped_name", nn::recomputed(nn::sharded({"data"}, wrapped_part{})))));
          alike(states(nn::recompute<nn::sharded_over<nn::named<wrapped_name, wrapped_part>, data>>{}));
          return well;
        }) == 4);
}

TEST_CASE("copies that are held wait too: calls move nothing of them, and their reduction is the sum",
          "[runtime][gradient]") {
  using model = four::model;
  using copies =
      nn::network<nn::sharded_over<nn::chain<nn::linear<9>, nn::relu, nn::linear<2>>, gathered<gathering::held>>,
                  wrapped_rows>;
  using cut =
      nn::network<nn::sharded_over<nn::chain<nn::linear<8, cut_out<model>>, nn::relu, nn::linear<2, cut_in<model>>>,
                                   model, gathered<gathering::held>>,
                  wrapped_rows>;
  CHECK(uncounted<copies>({6, 10}, 3) == 0);
  CHECK(uncounted<cut>({6, 10}, 3) == 0);
  const int well = satisfied<wrapped_grid>([](team<wrapped_grid>& t) {
    const auto gradients = [&]<class Net>(std::type_identity<Net>) {
      const Net net{t, seed{3}};
      index_t moved = 0;
      for (int i = 0; i < 3; ++i) {
        const auto y = net(distribute<wrapped_rows>(t, global_of({6, 10}, numbers{static_cast<std::uint64_t>(i)})));
        const index_t before = t.state()->total.bytes;
        torch::autograd::backward({y.local()}, {at::ones_like(y.local())});
        moved += t.state()->total.bytes - before;
      }
      const bool waits = told([&] { nn::grad_norm(net); }) == "tessera.gradient.unreduced";
      nn::reduce_gradients(net);
      std::vector<at::Tensor> all;
      for (const at::Tensor& w : net.parameters()) all.push_back(w.grad());
      return std::make_tuple(all, waits, moved);
    };
    const auto [held, waits, moved] = gradients(std::type_identity<copies>{});
    const auto [plain, at_once, summed] =
        gradients(std::type_identity<nn::network<nn::chain<nn::linear<9>, nn::relu, nn::linear<2>>, wrapped_rows>>{});
    bool right = waits && !at_once && moved == 0 && summed > 0 && held.size() == plain.size();
    for (std::size_t i = 0; i < plain.size(); ++i) right = right && at::allclose(held[i], plain[i], 1e-11, 1e-11);
    return right;
  });
  CHECK(well == 4);
}

TEST_CASE("what is used rounded comes rounded, half the bytes, and gives what copies give", "[runtime][gradient]") {
  using data = four::data;
  using halved = tensor<partition<wrapped_grid, blocks<data>, whole>, shape<samples, dim<10>>, bfloat16>;
  using masters = nn::chain<nn::linear<9, weights_as<float>>, nn::relu, nn::linear<2, weights_as<float>>>;
  CHECK(uncounted<nn::network<nn::sharded_over<masters, data>, halved>>({6, 10}) == 0);
  CHECK(uncounted<nn::network<nn::sharded_over<masters, data, four::model, gathered<gathering::once>>, halved>>(
            {6, 10}) == 0);
  CHECK(uncounted<nn::network<nn::sharded_over<masters, data, gathered<gathering::held>>, halved>>({6, 10}, 2) == 0);
  const int well = satisfied<wrapped_grid>([](team<wrapped_grid>& t) {
    const auto come = [&]<class Net>(std::type_identity<Net>) {
      const Net net{t, seed{3}};
      const auto y = net(distribute<halved>(t, global_of({6, 10}, numbers{1}).to(at::kBFloat16)));
      torch::autograd::backward({y.local()}, {at::ones_like(y.local())});
      nn::reduce_gradients(net);
      std::vector<at::Tensor> all{full_tensor(y).detach()};
      net.each_parameter([&](const nn::parameter& p) {
        all.push_back(
            full_tensor(tensor<dyn>(p.stored().team(), cotangent(p.stored().layout()), p.stored().local().grad())));
      });
      return all;
    };
    const auto plain = come(std::type_identity<nn::network<masters, halved>>{});
    bool right = plain.size() == 5 && plain[1].scalar_type() == at::kFloat;
    for (const auto& other :
         {come(std::type_identity<nn::network<nn::sharded_over<masters, data>, halved>>{}),
          come(std::type_identity<
               nn::network<nn::sharded_over<masters, data, four::model, gathered<gathering::once>>, halved>>{}),
          come(std::type_identity<nn::network<nn::sharded_over<masters, data, gathered<gathering::held>>, halved>>{})})
      for (std::size_t i = 0; i < plain.size(); ++i) right = right && at::allclose(other[i], plain[i], 1e-6, 1e-6);
    return right;
  });
  CHECK(well == 4);
}

TEST_CASE("what is gathered goes behind forward where a layer computes in another element than its weights'",
          "[runtime]") {
  struct data : axis<3> {};
  using grid = mesh<data>;
  constexpr tensor_value rows = value_of<tensor<partition<grid, blocks<data>, whole>, shape<dim<5>, dim<128>>, float>>;
  constexpr tensor_value slots =
      value_of<tensor<partition<grid, whole, blocks<data>, whole>, shape<dim<2>, dim<5>, dim<128>>, float>>;
  constexpr tensor_value images =
      value_of<tensor<partition<grid, blocks<data>, whole, whole>, shape<dim<4>, dim<96>, dim<3>>, float>>;
  // Of what is gathered, the most that a worker has between forward and backward.
  const auto share = [](tensor_value x, element e, const auto& layer) {
    x.element = e;
    std::vector<index_t> extents;
    for (const dimension& d : x.layout.dims) extents.push_back(d.extent);
    const auto run = in_team<grid>([&](team<grid>& t) {
      nn::program p;
      p.output(p.input(x) | nn::sharded({"data"}, layer));
      const nn::dynamic_network net{t, seed{1}, p};
      index_t gathered = 0;
      net.each_parameter([&](const nn::parameter& w) {
        index_t bytes = bytes_of(e);
        for (const dimension& d : w.stored().layout().dims) bytes *= d.extent;
        gathered += bytes;
      });
      const tensor<dyn> given =
          distribute(t.state(), x.layout, global_of(extents, numbers{3}).to(tessera::detail::scalar_type_of(e)));
      given.local().set_requires_grad(true);  // else a product keeps no weight
      net({given});                           // binds
      memory_count count;
      const auto y = net({given});
      const double lives = static_cast<double>(count.now());
      std::vector<at::Tensor> results, ones;
      for (const auto& one : y) {
        results.push_back(one.local());
        ones.push_back(at::ones_like(one.local()));
      }
      torch::autograd::backward(results, ones);
      bool finite = true;
      for (const at::Tensor& w : net.parameters()) finite = finite && w.grad().isfinite().all().item<bool>();
      return finite ? lives / static_cast<double>(gathered) : 9;
    });
    double most = run.well() ? 0 : 9;
    for (const auto& r : run.results) most = std::max(most, r ? *r : 9);
    return most;
  };
  for (const element e : {element::float16, element::bfloat16})
    for (const bool masters : {false, true}) {
      INFO(static_cast<int>(e) << (masters ? " of masters" : ""));
      const element stored = masters ? element::float32 : e;
      CHECK(share(rows, e, nn::linear_layer{.out = 256, .weights_as = stored}) < 0.2);
      CHECK(share(rows, e, nn::gated_layer{.out = 128, .weights_as = stored}) < 0.2);
      CHECK(share(slots, e, nn::experts_layer{.experts = 2, .out = 128, .weights_as = stored}) < 0.2);
      CHECK(share(images, e, nn::conv_layer{.out = 128, .kernel = {3}, .padding = {1}, .weights_as = stored}) < 0.2);
      CHECK(share(images, e, nn::conv_transpose_layer{.out = 128, .kernel = {3}, .weights_as = stored}) < 0.2);
    }
  CHECK(share(rows, element::float32, nn::linear_layer{.out = 256, .weights_as = element::float64}) < 0.2);
}
