#include "tests/support/tensors.hpp"

#include <torch/optim/sgd.h>

#include <atomic>
#include <optional>

namespace tessera::testing::sampling {

using namespace engine;

namespace {

struct twin : axis<2> {};
struct side : axis<2> {};
struct sample : dyn {};
using pair = mesh<twin>;
using square = mesh<twin, side>;
using samples = tensor<partition<pair, blocks<twin>, whole>, shape<sample, dim<3>>, double>;
using dense = nn::sequential<samples, nn::linear<4>, nn::relu, nn::linear<2>>;

/// What each of two workers that train a network is told, and at which call of it; `step(net, rank, call)` does what an
/// optimizer does.
struct told_at {
  std::string text;
  int call = 0;
};
template <class Step>
std::vector<told_at> training(int calls, checks how, Step&& step, bool judged_without_training = false) {
  launch_options o = threads_only();
  o.checks = how;
  std::vector<told_at> all(2);
  char* none[]{nullptr};
  launch<pair>(0, none, o, [&](team<pair>& t) {
    told_at& mine = all[static_cast<std::size_t>(t.rank())];
    try {
      dense net{t, seed{1}};
      for (int i = 1; i <= calls; ++i) {
        mine.call = i;
        net.train(!judged_without_training || i == 1);
        const auto y = net(distribute<samples>(t, at::ones({5, 3}, at::kDouble) * i));
        if (!net.training()) continue;
        sum(y * y).backward();
        step(net, t.rank(), i);
      }
    } catch (const error& e) {
      mine.text = e.what();
    }
  });
  return all;
}

bool both_name_a_parameter(const std::vector<told_at>& all, int call) {
  for (const told_at& one : all)
    if (one.call != call || one.text.find("[tessera.agree.copies]") == std::string::npos ||
        one.text.find("[0.") == std::string::npos)
      return false;
  return true;
}

void descend(const dense& net, double rate) {
  torch::optim::SGD(net.parameters(), torch::optim::SGDOptions(rate)).step();
}

}  // namespace

TEST_CASE("workers that step a network otherwise are told which parameter drifted, by the next call that is compared",
          "[refusal]") {
  const auto well = [](const dense& net, int, int) { descend(net, 0.01); };
  const auto other_rates = [](const dense& net, int rank, int) { descend(net, rank == 0 ? 0.01 : 0.02); };
  const auto alone = [](const dense& net, int rank, int) {
    if (rank == 0) descend(net, 0.01);
  };
  const auto alone_at_five = [](const dense& net, int rank, int call) {
    if (rank == 0 || call != 5) descend(net, 0.001);
  };
  CHECK(training(9, checks::sampled, well)[0].text.empty());
  CHECK(both_name_a_parameter(training(9, checks::sampled, other_rates), 2));
  CHECK(both_name_a_parameter(training(9, checks::sampled, alone), 2));
  CHECK(both_name_a_parameter(training(20, checks::sampled, alone_at_five), 8));
  CHECK(both_name_a_parameter(training(20, checks::always, alone_at_five), 6));
  CHECK(training(20, checks::never, alone_at_five)[0].text.empty());
}

TEST_CASE("copies that drifted are told also where the network is judged and not trained any more", "[refusal]") {
  const auto alone = [](const dense& net, int rank, int) {
    if (rank == 0) descend(net, 0.01);
  };
  CHECK(both_name_a_parameter(training(4, checks::sampled, alone, true), 2));
}

TEST_CASE("a launch ends with a comparison of what was trained: a step behind the last call is told too", "[refusal]") {
  const auto status_of = [](checks how, int last_step_of, bool outlives) {
    launch_options o = threads_only();
    o.checks = how;
    std::vector<std::optional<dense>> kept(2);
    char* none[]{nullptr};
    return launch<pair>(0, none, o, [&](team<pair>& t) {
      dense net{t, seed{1}};
      for (int i = 0; i < 3; ++i) {
        const auto y = net(distribute<samples>(t, at::ones({5, 3}, at::kDouble)));
        sum(y * y).backward();
        if (i < 2 || last_step_of < 0 || t.rank() == last_step_of) descend(net, 0.01);
      }
      if (outlives) kept[static_cast<std::size_t>(t.rank())].emplace(std::move(net));
    });
  };
  for (const bool outlives : {false, true}) {
    CHECK(status_of(checks::sampled, -1, outlives) == 0);
    CHECK(status_of(checks::sampled, 1, outlives) == 1);
    CHECK(status_of(checks::never, 1, outlives) == 0);
  }
}

namespace {

using lower = fixed<square, twin, 1>;
using words = tensor<partition<lower, blocks<side>>, shape<sample>, std::int64_t>;
using reader = nn::sequential<words, nn::embedding<7, 5>, nn::linear<3>>;
using labels = tensor<partition<lower, blocks<side>>, shape_of<6>, std::int64_t>;
using some_words = tensor<partition<lower, blocks<side>>, shape_of<6>, std::int64_t>;
using fixed_reader = nn::sequential<some_words, nn::embedding<7, 5>, nn::linear<3>>;

}  // namespace

TEST_CASE("layers on a part of the mesh agree among its workers, and no other worker waits for them", "[runtime]") {
  for (const checks how : {checks::sampled, checks::always}) {
    launch_options o = threads_only();
    o.checks = how;
    std::atomic<int> trained = 0, others = 0, refused = 0;
    char* none[]{nullptr};
    const int status = launch<square>(0, none, o, [&](team<square>& t) {
      fixed_reader net{t, seed{3}};
      if (t.coordinate<twin>() == 0) {
        ++others;  // nothing of the other stage concerns it
        return;
      }
      const auto x = distribute<some_words>(t, at::arange(6, at::kLong));
      const auto y = distribute<labels>(t, at::arange(6, at::kLong).remainder(3));
      for (int i = 0; i < 5; ++i) {
        nn::cross_entropy(net(x), y).backward();
        ++trained;
      }
      const auto wrong = distribute<some_words>(t, at::arange(6, at::kLong) + 5);
      refused += told([&] { net(wrong); }) == "tessera.embedding.index";
    });
    CHECK((status == 0 && others == 2 && trained == 10 && refused == 2));
  }
}

}  // namespace tessera::testing::sampling
