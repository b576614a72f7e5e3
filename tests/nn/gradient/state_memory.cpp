#include "tests/support/leaf_training.hpp"
#include "tests/support/torch_training.hpp"

#include <tessera/nn/gradient/bundle_shards.hpp>
#include <tessera/nn/training/average.hpp>
#include <tessera/tensor/memory/memory_count.hpp>

// The bytes a parameter that a worker of d keeps where bfloat16 is used, and floats are stepped by Adam. Others count
// 6 + 12/d: 2 of the parameter, 4 of its gradient; 4 of the master and 8 of Adam, divided.

namespace tessera::testing::state_memory {
namespace {

/// What is alive at the points of a step of two passes, in bytes a parameter.
struct alive {
  double rest = 0;      ///< without gradients
  double waiting = 0;   ///< behind the first pass
  double summed = 0;    ///< behind the last one
  double most = 0;      ///< at any time
  double averaged = 0;  ///< what an average takes besides
};

bool near(double is, double law) { return std::abs(is / law - 1) < 0.05; }

std::string text_of(const alive& a) {
  return fmt::format("rest {:.3f}, waiting {:.3f}, summed {:.3f}, most {:.3f}, averaged {:.3f}", a.rest, a.waiting,
                     a.summed, a.most, a.averaged);
}

alive of_shards(const team_handle& team, int stage) {
  const at::Tensor x = at::ones({2, 96}, at::kBFloat16);
  memory_count count;
  torch::nn::Sequential net;
  for (int i = 0; i < 24; ++i) net->push_back(torch::nn::Linear(96, 96));
  net->to(at::kBFloat16);
  constexpr double n = 24 * (96 * 96 + 96);
  const auto now = [&] { return static_cast<double>(count.now()) / n; };
  nn::bundle_shards shards(team, *net, {.stage = stage, .bundle_bytes = index_t{2} * 96 * 97});
  torch::optim::AdamW optimizer(shards.parameters(), torch::optim::AdamWOptions(1e-3));
  alive a;
  for (int step = 0; step < 3; ++step) {  // Adam's state comes with the first
    if (step == 2) count.restart_peak();
    optimizer.zero_grad();
    a.rest = now();
    for (const bool last : {false, true}) {
      const auto window = shards.window(last);
      net->forward(x).sum().backward();
      (last ? a.summed : a.waiting) = now();
    }
    optimizer.step();
    shards.gather();
    a.most = static_cast<double>(count.peak()) / n;
  }
  const double before = now();
  const nn::average average(shards);
  a.averaged = now() - before;
  return a;
}

TEST_CASE("shards keep 2 + 12/d bytes a parameter of bfloat16 between steps, and no more than 6 + 12/d", "[law]") {
  for (const int d : {1, 2, 3, 4})
    for (const int stage : {1, 2}) {
      const auto run = on_mesh(row_of(d), [&](const team_handle& team) { return of_shards(team, stage); });
      REQUIRE(run.errors() == "");
      for (int r = 0; r < d; ++r) {
        const alive& a = run.of(r);
        INFO(d << " workers, stage " << stage << ": " << text_of(a));
        CHECK(near(a.rest, 2 + 12.0 / d));
        CHECK(near(a.waiting, stage == 1 ? 4 + 12.0 / d : 2 + 16.0 / d));
        CHECK(near(a.summed, 2 + 16.0 / d));
        CHECK(near(a.averaged, 4.0 / d));
        for (const double one : {a.rest, a.waiting, a.summed}) CHECK(one < 1.05 * (6 + 12.0 / d));
        if (stage == 1) CHECK(a.most < 1.05 * (6 + 12.0 / d));
      }
    }
}

struct kept_batch : dyn {};
template <int D>
struct kept_on {
  struct data : axis<D> {};
  using rows = tensor<partition<mesh<data>, blocks<data>, whole>, shape<kept_batch, dim<96>>, bfloat16>;
  using layer = nn::linear<96, weights_as<float>>;
  using four = nn::chain<layer, layer, layer, layer>;
  using part = nn::chain<four, four, four, four, four, four>;
  using copies = nn::network<nn::bundled<part>, rows>;
  using tiles = nn::network<nn::bundled<part, data>, rows>;
  using sharded = nn::network<nn::sharded_over<part, data>, rows>;
};

template <class Net, int D>
std::string differs(double rest, double waiting, double summed) {
  using rows = typename kept_on<D>::rows;
  const auto run = in_team<typename rows::mesh_type>([](auto& t) -> alive {
    const auto x = distribute<rows>(t, global_of({2 * D, 96}, numbers{3}).to(at::kBFloat16));
    memory_count count;
    const Net net{t, seed{1}};
    constexpr double n = 24 * (96 * 96 + 96);
    const auto now = [&] { return static_cast<double>(count.now()) / n; };
    torch::optim::AdamW optimizer(net.parameters(), torch::optim::AdamWOptions(1e-3));
    alive a;
    for (int step = 0; step < 2; ++step) {
      optimizer.zero_grad();
      a.rest = now();
      for (const bool last : {false, true}) {
        const nn::accumulation window(net, last);
        {
          const auto y = net(x);
          y.local().backward(at::ones_like(y.local()));
        }
        (last ? a.summed : a.waiting) = now();
      }
      optimizer.step();
    }
    return a;
  });
  if (!run.well()) return run.errors();
  std::string wrong;
  for (const auto& a : run.results)
    if (!near(a->rest, rest) || !near(a->waiting, waiting) || !near(a->summed, summed)) wrong += text_of(*a) + "; ";
  return wrong;
}

template <int D>
void judge_networks() {
  using on = kept_on<D>;
  constexpr double d = D;
  const bool moves = D > 1;  // on one worker what is stored is what is used, and its gradient waits where it stays
  CHECK(differs<typename on::copies, D>(12, 16, 16) == "");
  CHECK(differs<typename on::sharded, D>(12 / d, 16 / d, 16 / d) == "");
  CHECK(differs<typename on::tiles, D>(12 / d, moves ? 8 + 12 / d : 16, 16 / d) == "");
}

TEST_CASE("networks keep 12/d bytes a parameter that is stored as float tiles, and 16/d with gradients", "[law]") {
  judge_networks<1>();
  judge_networks<2>();
  judge_networks<4>();
}

}  // namespace
}  // namespace tessera::testing::state_memory
