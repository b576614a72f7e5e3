#include "tests/support/counting_transport.hpp"
#include "tests/support/tensors.hpp"

#include <tessera/nn/network/program_parts.hpp>
#include <tessera/nn/training/average.hpp>
#include <tessera/tensor/memory/memory_count.hpp>

#include <ATen/OpMathType.h>
#include <torch/optim/adam.h>
#include <torch/optim/sgd.h>

// Averages of weights that workers share as tiles: those of one worker, to the bit, and the network's own come back.

namespace tessera::testing::averages {

using namespace engine;

namespace {

using nn::average;
using nn::average_options;

struct averaged_batch : dyn {};

template <int D, int M>
struct averaged_on {
  struct data : axis<D> {};
  struct model : axis<M> {};
  using grid = mesh<data, model>;
  using rows = tensor<partition<grid, blocks<data>, whole>, shape<averaged_batch, dim<5>>, double>;
  using cut_columns = partition<grid, blocks<data>, blocks<model>>;
  /// Weights that all have, that model cuts, of tiles, and of half types; buffers of a norm.
  using network = nn::sequential<rows, nn::linear<7>, nn::batch_norm<>, nn::relu, nn::linear<6, output_as<cut_columns>>,
                                 nn::sharded_over<nn::linear<3>, data>>;
};

/// Layers over other meshes than the network's, which some of its workers are outside of; weights that are parts of one
/// serial tensor.
struct averaged_elsewhere {
  struct deep : axis<2> {};
  struct flat : axis<3> {};
  struct around : axis<6> {};
  using grid = mesh<deep, flat>;
  using ring = mesh<around>;
  using rows = tensor<partition<grid, blocks<deep>, blocks<flat>>, shape<averaged_batch, dim<5>>, double>;
  using network =
      nn::sequential<rows, nn::linear<7>, nn::relu, nn::linear<6, output_as<partition<ring, whole, blocks<around>>>>,
                     nn::relu, nn::linear<4, output_as<partition<fixed<grid, deep, 1>, whole, blocks<flat>>>>>;
};
struct averaged_heads {
  struct up : axis<2> {};
  struct across : axis<2> {};
  using grid = mesh<up, across>;
  using stream = partition<grid, blocks<up>, whole, whole, invariant<across>>;
  using input = tensor<stream, shape<averaged_batch, dim<5>, dim<6>>, double>;
  struct model {
    constexpr auto operator()(auto x) const {
      const auto [q, k, v] = x | nn::heads<4, 2, 2, cut_out<across>>{};
      return nn::attention<causal>{}(q, k, v) | nn::linear<6, cut_in<across>, output_as<stream>>{};
    }
  };
};
using averaged_attention = nn::network<averaged_heads::model, averaged_heads::input>;

/// The whole tensor, where this worker may ask for it.
at::Tensor whole_of(const tensor<dyn>& x) { return x.team()->inside() ? full_tensor(detach(x)) : at::Tensor(); }

/// Weights of a step, which depend on their path alone.
void give_values(const nn::engine::state_tensor& of, int step) {
  const at::Tensor& there = of.stored().local();
  const auto sizes = extents_of(of.stored().layout());
  index_t n = 1;
  for (const index_t extent : sizes) n *= extent;
  const double begin = static_cast<double>(text(of.path().c_str()).hash % 100) + 0.37 * step;
  of.assign(((at::arange(n, at::kDouble) + begin).sin() * (1 + step)).view(sizes).to(there.scalar_type()));
}

/// What one worker makes of them, as it is defined.
at::Tensor averaged_alone(const std::vector<at::Tensor>& values, const std::vector<double>& decays) {
  at::Tensor e = values[0].to(at::toOpMathType(values[0].scalar_type()));
  for (std::size_t k = 0; k < decays.size(); ++k)
    e = e * decays[k] + values[k + 1].to(e.scalar_type()) * (1 - decays[k]);
  return e;
}

template <class Network>
std::string differs_from_alone(Network& net, const team_handle& team, const average_options& options) {
  std::map<std::string, std::vector<at::Tensor>> values;
  const auto at_step = [&](int k) {
    const auto give = [&](const nn::engine::state_tensor& one) {
      give_values(one, k);
      values[one.path()].push_back(whole_of(one.stored()));
    };
    net.each_parameter(give);
    net.each_buffer(give);
  };
  at_step(0);
  average of(net, options);
  std::vector<double> decays;
  for (int k = 1; k <= 3; ++k) {
    at_step(k);
    const index_t before = team->total.bytes;
    of.update();
    if (team->total.bytes != before) return "an update moves";
    decays.push_back(options.warms_up ? std::min(options.decay, k / (9.0 + k)) : options.decay);
  }
  std::string wrong;
  std::map<std::string, bool> is_parameter, trained;
  net.each_parameter([&](const nn::parameter& p) {
    is_parameter[p.path()] = true;
    trained[p.path()] = p.stored().local().requires_grad();
  });
  std::size_t seen = 0;
  of.each_tensor([&](const std::string& key, tensor<dyn>& kept) {
    ++seen;
    const std::vector<at::Tensor>& all = values[key];
    const at::Tensor there = whole_of(kept);
    if (!there.defined()) return;
    const at::Tensor expected = !is_parameter[key]                      ? all.back()
                                : trained[key] || !options.only_trained ? averaged_alone(all, decays)
                                                                        : averaged_alone(all, {});
    if (!same_bits(there, expected)) wrong += key + " has other bits; ";
  });
  if (seen != values.size()) wrong += "some are missing; ";
  of.each_tensor([&](const std::string& key, tensor<dyn>& kept) { values[key].push_back(whole_of(kept)); });
  const auto in = of.swapped_in();
  const auto stands = [&](const nn::engine::state_tensor& one) {
    const at::Tensor there = whole_of(one.stored());
    if (there.defined() && !same_bits(there, values[one.path()].back().to(there.scalar_type())))
      wrong += one.path() + " is another one; ";
  };
  net.each_parameter(stands);
  net.each_buffer(stands);
  return wrong;
}

template <int D, int M>
void judge_averages() {
  using on = averaged_on<D, M>;
  const auto run = in_team<typename on::grid>([](auto& t) -> std::string {
    typename on::network net{t, seed{5}};
    net.parameters()[1].set_requires_grad(false);
    std::string wrong;
    for (const average_options& options : {average_options{.decay = 0.9}, average_options{.only_trained = false},
                                           average_options{.decay = 0.3, .warms_up = true}})
      wrong += differs_from_alone(net, t.state(), options);
    return wrong;
  });
  INFO(D << " " << M << " " << run.errors());
  REQUIRE(run.well());
  for (const auto& r : run.results) CHECK(*r == "");
}

}  // namespace

TEST_CASE("an average has the bits of one worker's on every mesh, and an update moves nothing", "[law]") {
  judge_averages<1, 1>();
  judge_averages<2, 2>();
  judge_averages<3, 2>();
  judge_averages<5, 1>();  // some of them hold nothing of a small weight
}

TEST_CASE("averages of layers on other meshes, and of parts of a serial tensor, are one worker's", "[law]") {
  const auto well = [](const auto& run) {
    INFO(run.errors());
    REQUIRE(run.well());
    for (const auto& r : run.results) CHECK(*r == "");
  };
  well(in_team<averaged_elsewhere::grid>([](auto& t) {
    averaged_elsewhere::network net{t, seed{5}};
    return differs_from_alone(net, t.state(), {.decay = 0.7});
  }));
  well(in_team<averaged_heads::grid>([](auto& t) {
    averaged_attention net{t, seed{5}};
    return differs_from_alone(net, t.state(), {.decay = 0.7});
  }));
}

TEST_CASE("averages of half types are kept in float, where small steps are not rounded away", "[law]") {
  for (const element e : {element::bfloat16, element::float16}) {
    const auto run = in_team<averaged_on<3, 1>::grid>([&](auto& t) -> std::string {
      nn::program p;
      const auto x = p.input<averaged_on<3, 1>::rows>();
      p.output(x | nn::linear_layer{.out = 4, .weights_as = e});
      nn::dynamic_network net{t, seed{5}, p};
      const std::string wrong = differs_from_alone(net, t.state(), {.decay = 0.999});
      average of(net, {.decay = 0.9999});
      net.each_parameter([](const nn::parameter& w) { give_values(w, 1); });
      for (int k = 0; k < 100; ++k) of.update();
      bool moved = true;
      of.each_tensor([&](const std::string&, tensor<dyn>& kept) {
        const at::Tensor before = full_tensor(kept);
        moved = moved && kept.type() == element::float32;
      });
      const auto in = of.swapped_in();
      net.each_parameter([&](const nn::parameter& w) { moved = moved && w.stored().type() == e; });
      return moved ? wrong : "of another element";
    });
    INFO(run.errors());
    REQUIRE(run.well());
    for (const auto& r : run.results) CHECK(*r == "");
  }
}

TEST_CASE("no worker waits for another one in an update", "[law]") {
  const auto run = on_workers(3, [](const std::shared_ptr<transport>& carrier) -> int {
    mesh_value m;
    m.axes.push({text("data"), 3});
    const auto counting = std::make_shared<counting_transport>(carrier);
    const auto team = std::make_shared<team_state>(counting, row_major(m));
    team->checks = checks::never;
    layout x;
    x.mesh = team->mesh();
    x.placements.resize(1);
    x.dims.resize(2);
    x.dims[0].extent = 7;
    x.dims[1].extent = 3;
    x.cut_by(0, 0);
    nn::program p;
    p.output(p.input({x, element::float64}) | nn::linear_layer{.out = 5} |
             nn::sharded({"data"}, nn::linear_layer{.out = 5}));
    const nn::dynamic_network net{team, seed{5}, p};
    average of(net);
    const int before = counting->begun;
    of.update();
    of.update();
    return counting->begun - before;
  });
  INFO(run.errors());
  REQUIRE(run.well());
  for (const auto& r : run.results) CHECK(*r == 0);
}

TEST_CASE("p workers that have copies keep a p-th each", "[law]") {
  using on = averaged_on<4, 1>;
  const auto run = in_team<on::grid>([](auto& t) -> double {
    using rows = tensor<partition<on::grid, blocks<on::data>, whole>, shape<averaged_batch, dim<256>>, double>;
    const nn::sequential<rows, nn::linear<1024>, nn::relu, nn::linear<64>> net{t, seed{5}};
    double all = 0;
    for (const at::Tensor& p : net.parameters()) all += static_cast<double>(p.nbytes());
    memory_count count;
    average of(net);
    const double kept = static_cast<double>(count.now());
    of.update();
    return std::max(kept, static_cast<double>(count.now())) / all;
  });
  REQUIRE(run.well());
  for (const auto& r : run.results) {
    CHECK(*r >= 0.25);
    CHECK(*r < 0.2505);
  }
}

TEST_CASE("averages stand in the network's place, and its weights come back to the bit", "[law]") {
  using on = averaged_on<3, 2>;
  const auto run = in_team<on::grid>([](auto& t) -> std::string {
    on::network net{t, seed{5}};
    torch::optim::Adam optimizer(net.parameters(), 0.05);
    average of(net, {.decay = 0.5});
    const auto x = distribute<on::rows>(t, global_of({7, 5}, numbers{3}));
    for (int k = 0; k < 3; ++k) {
      optimizer.zero_grad();
      const auto y = net(x);
      sum(y * y).backward();
      optimizer.step();
      of.update();
    }
    const nn::state_dict before = nn::state_of(net);
    std::vector<at::Tensor> gradients;
    for (const at::Tensor& p : net.parameters()) gradients.push_back(p.grad());
    nn::state_dict averages;
    of.each_tensor([&](const std::string& key, tensor<dyn>& kept) { averages[key] = full_tensor(kept); });
    std::string wrong;
    {
      const auto in = of.swapped_in();
      net.eval();
      const at::NoGradGuard no_graph;
      net(x);
      for (const auto& [key, there] : nn::state_of(net))
        if (!same_bits(there, averages[key])) wrong += key + " is not the average; ";
      if (told([&] { of.update(); }) != "tessera.average.swapped") wrong += "an update; ";
      if (told([&] { const auto again = of.swapped_in(); }) != "tessera.average.swapped") wrong += "a second swap; ";
    }
    for (const auto& [key, there] : nn::state_of(net))
      if (!same_bits(there, before.at(key))) wrong += key + " did not come back; ";
    for (std::size_t i = 0; i < gradients.size(); ++i)
      if (!net.parameters()[i].grad().is_same(gradients[i])) wrong += "another gradient; ";
    net.train();
    of.update();
    return wrong;
  });
  INFO(run.errors());
  REQUIRE(run.well());
  for (const auto& r : run.results) CHECK(*r == "");
}

TEST_CASE("training goes on to the bit whenever averages were swapped in, which compute as weights assigned by hand",
          "[law]") {
  using on = averaged_on<3, 2>;
  const auto run = in_team<on::grid>([](auto& t) -> std::string {
    on::network net{t, seed{5}}, beside{t, seed{5}}, assigned{t, seed{1}};
    torch::optim::Adam optimizer(net.parameters(), 0.05), plain(beside.parameters(), 0.05);
    average of(net, {.decay = 0.5});
    const auto x = distribute<on::rows>(t, global_of({7, 5}, numbers{3}));
    const auto step = [&](auto& by, const auto& which) {
      by.zero_grad();
      const auto y = which(x);
      sum(y * y).backward();
      by.step();
    };
    std::string wrong;
    for (int k = 0; k < 4; ++k) {
      step(optimizer, net);
      step(plain, beside);
      of.update();
      const auto in = of.swapped_in();
      nn::assign(assigned, nn::state_of(net));
      net.eval();
      assigned.eval();
      if (!same_bits(net(x).local(), assigned(x).local())) wrong += "computes otherwise; ";
      net.train();
      assigned.train();
    }
    const nn::state_dict learned = nn::state_of(beside);
    for (const auto& [key, there] : nn::state_of(net))
      if (!same_bits(there, learned.at(key))) wrong += key + " learned otherwise; ";
    return wrong;
  });
  INFO(run.errors());
  REQUIRE(run.well());
  for (const auto& r : run.results) CHECK(*r == "");
}

TEST_CASE("averages are not swapped in while gradients wait to be reduced, and nothing changes", "[refusal]") {
  using on = averaged_on<2, 1>;
  CHECK(satisfied<on::grid>([](auto& t) {
          nn::sequential<on::rows, nn::linear<3>, nn::sharded_over<nn::linear<7>, on::data, gathered<gathering::held>>>
              net{t, seed{5}};
          average of(net, {.decay = 0.5});
          const auto y = net(distribute<on::rows>(t, global_of({6, 5}, numbers{3})));
          sum(y * y).backward();
          const nn::state_dict before = nn::state_of(net);
          bool well = told([&] { const auto in = of.swapped_in(); }) == "tessera.gradient.unreduced";
          for (const auto& [key, there] : nn::state_of(net)) well = well && same_bits(there, before.at(key));
          nn::reduce_gradients(net);
          return well && told([&] { const auto in = of.swapped_in(); }) == "none" &&
                 told([&] { of.update(); }) == "none";
        }) == 2);
}

TEST_CASE("who trains while averages stand in the network's place is told, and the weights come back", "[refusal]") {
  using on = averaged_on<2, 1>;
  for (const bool zeroes : {false, true}) {
    const auto run = in_team<on::grid>([&](auto& t) -> std::string {
      nn::sequential<on::rows, nn::linear<7>> net{t, seed{5}};
      torch::optim::SGD optimizer(net.parameters(), 0.05);
      const auto x = distribute<on::rows>(t, global_of({6, 5}, numbers{3}));
      const auto learns = [&] {
        const auto y = net(x);
        sum(y * y).backward();
      };
      learns();
      average of(net);
      const nn::state_dict before = nn::state_of(net);
      std::string wrong;
      {
        const auto in = of.swapped_in();
        if (zeroes) {
          optimizer.zero_grad();
          learns();
          optimizer.step();
          optimizer.zero_grad();
        } else {
          std::string said;
          try {
            optimizer.step();
          } catch (const std::exception& e) {
            said = e.what();
          }
          if (said.find("[tessera.average.stepped]") == std::string::npos) wrong += "a step said: " + said;
          if (told(learns) == "none") wrong += "a backward; ";
        }
      }
      for (const auto& [key, there] : nn::state_of(net))
        if (!same_bits(there, before.at(key))) wrong += key + " did not come back; ";
      if ((told([&] { of.update(); }) == "tessera.average.stepped") != zeroes) wrong += "the update; ";
      if (told([&] { of.update(); }) != "none") wrong += "told again; ";
      optimizer.step();
      return wrong;
    });
    INFO(run.errors());
    REQUIRE(run.well());
    for (const auto& r : run.results) CHECK(*r == "");
  }
}

TEST_CASE("an average saves how often it was updated, and refuses other numbers", "[refusal]") {
  CHECK(satisfied<averaged_on<2, 1>::grid>([](auto& t) {
          using on = averaged_on<2, 1>;
          nn::sequential<on::rows, nn::linear<7>> net{t, seed{5}};
          average of(net), other(net);
          of.update();
          of.update();
          other.load_state(of.state());
          const auto refuses = [&](const nn::state_dict& numbers) {
            return told([&] { other.load_state(numbers); }) == "tessera.training.state" && other.updates() == 2;
          };
          return other.updates() == 2 && refuses({}) && refuses({{"updates", at::scalar_tensor(2, at::kFloat)}}) &&
                 refuses({{"updates", at::scalar_tensor(-1, at::kLong)}}) &&
                 refuses({{"updates", at::ones({1}, at::kLong)}}) &&
                 refuses({{"updates", at::scalar_tensor(3, at::kLong)}, {"more", at::scalar_tensor(3, at::kLong)}}) &&
                 told([&] { average(net, {.decay = 1.5}); }) == "tessera.average.decay" &&
                 told([&] { average(net, {.decay = std::nan("")}); }) == "tessera.average.decay";
        }) == 2);
}

}  // namespace tessera::testing::averages
