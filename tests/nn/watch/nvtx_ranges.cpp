#include "tests/support/nvtx/nvtx3/nvToolsExt.h"
#include "tests/support/tensors.hpp"

#include <tessera/nn/watch/nvtx_ranges.hpp>

#include <algorithm>
#include <set>

// What NVTX is told of a network that runs.

namespace tessera::testing::ranges_of_networks {
namespace {

struct lines : axis<2> {};
using grid = mesh<lines>;
using image = tensor<partition<grid, whole, whole, blocks<lines>>, shape_of<2, 3, 8>, double>;
using net_type = nn::sequential<image, nn::conv<4, kernel<3>, padding<1>>, nn::relu>;

struct step_ranges {
  std::vector<std::string> named, behind;
};

step_ranges watched(team<grid>& t) {
  net_type net{t, seed{3}};
  const at::Tensor all = global_of({2, 3, 8}, numbers{1});
  const auto step = [&] {
    auto x = distribute<image>(t, all);
    x.requires_grad();
    const auto y = net(x);
    torch::autograd::backward({y.local()}, {at::ones_like(y.local())});
  };
  step();
  named_ranges().clear();
  step_ranges found;
  {
    const nn::nvtx_ranges named(net);
    step();
    found.named = named_ranges();
  }
  named_ranges().clear();
  step();
  found.behind = named_ranges();
  return found;
}

}  // namespace

TEST_CASE("layers and verbs are named as ranges that end, forward and backward, while they are asked for",
          "[runtime]") {
  STATIC_REQUIRE(nn::nvtx_ranges::recorded);
  const auto run = in_team<grid>([](team<grid>& t) { return watched(t); });
  REQUIRE(run.well());
  for (int r = 0; r < 2; ++r) {
    const std::vector<std::string>& all = run.of(r).named;
    const auto count = [&](const std::string& one) { return std::count(all.begin(), all.end(), one); };
    CHECK(count("+ 0 conv") == 1);
    CHECK(count("+ 1 relu") == 1);
    CHECK(count("+ 0 conv backward") == 1);
    CHECK(count("+ 1 relu backward") == 1);
    CHECK(count("> halo_exchange 2x3x8 double") == 1);
    CHECK(count("> halo_accumulate 2x3x8 double") == 1);
    CHECK(count("> all_reduce 4x3x3 double") == 1);  // of the weight's gradient
    CHECK(run.of(r).behind.empty());
    // ranges that nest end as often as they begin, and never before; the others end once each
    int open = 0, most = 0;
    std::set<std::string> started;
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (all[i][0] == '+') most = std::max(most, ++open);
      if (all[i][0] == '-') CHECK(--open >= 0);
      if (all[i][0] == '>') started.insert("< " + std::to_string(i + 1));
      if (all[i][0] == '<') CHECK(started.erase(all[i]) == 1);
    }
    CHECK(open == 0);
    CHECK(most == 1);
    CHECK(started.empty());
  }
}

}  // namespace tessera::testing::ranges_of_networks
